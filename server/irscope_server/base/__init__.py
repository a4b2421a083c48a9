"""What every room of the server uses: JSON forms, texts of files, the run store, words, settings."""
