"""Alembic's entry: within the transaction of the connection that it is given."""

from alembic import context

from bayescase.study.data.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
