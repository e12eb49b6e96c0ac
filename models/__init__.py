"""Pure decisions and records: numbers and text in, numbers and text out."""
