"""Files the program reads: source catalogue, keyword rules, SQL schema, samples."""
