"""`tanist spark`: the pipeline's jobs."""
