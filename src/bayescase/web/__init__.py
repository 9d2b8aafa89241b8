"""What every page of ours needs: keys and tokens, a guard, a password, forms, templates, serving."""
