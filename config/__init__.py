"""Settings, logging, metrics and fault points: what every process needs before it starts."""
