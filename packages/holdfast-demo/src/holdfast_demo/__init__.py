"""What `holdfast up` shows: demo data, and partners that cannot run here. Tests use the partners too."""
