"""Pictures of what the pipeline's jobs found: single HTML files that need nothing else, and no script."""
