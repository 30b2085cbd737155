"""PostgreSQL, Valkey and S3 from wheels, for a machine that has none of them."""
