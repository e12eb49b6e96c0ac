"""When to poll next: one policy a file, all behind `models.polling.choice`."""
