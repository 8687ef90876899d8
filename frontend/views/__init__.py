"""Pages of the console: each reads queries, writes commands and renders."""
