"""Reports: runs -> plots, maps and pages. Nothing here runs a simulation."""
