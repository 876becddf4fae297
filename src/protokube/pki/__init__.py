"""Certificate authorities and certificates: issue, check, renew and keep them."""
