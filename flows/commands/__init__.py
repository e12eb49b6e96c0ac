"""What the commands do; `flows.cli` only reads their options."""
