"""What problem scripts, sweeps and studies share: command lines of scripts, manifests, sweeps, rows of results."""
