"""Programs: what users' modules do, traced, so that engines and training can take them apart."""
