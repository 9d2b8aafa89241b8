"""How the schema came to be what tables.py says, step by step. A step that was released is never changed."""
