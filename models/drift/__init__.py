"""Has the site changed under us, and is the text still right: features, reference, watch."""
