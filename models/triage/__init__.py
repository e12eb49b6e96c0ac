"""What matters: keyword rules over new articles, and what people are told of their hits."""
