"""The first version. Answers and responses cannot be changed, not even by a programme with a mistake."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None
BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade():
    for create in (studies, participants, answers, responses, events, admission, of_the_server):
        create()
    for table in ("answers", "responses", "events"):
        op.create_index(f"ix_{table}_participant_id", table, ["participant_id"])
    for table in ("answers", "responses"):
        never_change(table)


def studies():
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("design_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def participants():
    op.create_table(
        "participants",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("public_id", sa.String(32), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("receipt_hash", sa.String(64)),
        sa.Column("receipt_number", sa.Integer, nullable=False),
        sa.Column("external_hash", sa.String(64)),
        sa.Column("other_hashes", sa.JSON, nullable=False),
        sa.Column("phase", sa.String(8), nullable=False),
        sa.Column("simulated", sa.Boolean, nullable=False),
        sa.Column("slot", sa.Integer),
        sa.Column("first_slot", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("consented_at", sa.BigInteger, nullable=False),
        sa.Column("last_seen_at", sa.BigInteger, nullable=False),
        sa.Column("step_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.UniqueConstraint("public_id", name="uq_participants_public_id"),
        sa.UniqueConstraint("token_hash", name="uq_participants_token_hash"),
        sa.UniqueConstraint("receipt_hash", name="uq_participants_receipt_hash"),
        sa.UniqueConstraint("phase", "slot", name="uq_participants_phase_slot"),
        sa.UniqueConstraint("phase", "external_hash", name="uq_participants_phase_external_hash"),
    )


def answers():
    op.create_table(
        "answers",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("participant_id", BIG, sa.ForeignKey("participants.id"), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("condition", sa.String(64), nullable=False),
        sa.Column("item", sa.String(64), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("choice", sa.Integer),
        sa.Column("correct", sa.Boolean),
        sa.Column("ratings", sa.JSON, nullable=False),
        sa.Column("sent_at", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("shown_ms", sa.Integer),
        sa.Column("first_input_ms", sa.Integer),
        sa.Column("submitted_ms", sa.Integer),
        sa.Column("hidden_ms", sa.Integer),
        sa.Column("blur_count", sa.Integer),
        sa.Column("timing_differs", sa.Boolean, nullable=False),
        sa.UniqueConstraint("participant_id", "round", "trial", name="uq_answers_participant_id_round_trial"),
    )


def responses():
    op.create_table(
        "responses",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("participant_id", BIG, sa.ForeignKey("participants.id"), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("ref", sa.String(64), nullable=False),
        sa.Column("values", sa.JSON, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("participant_id", "round", "kind", "ref", name="uq_responses_participant_id_round_kind_ref"),
    )


def events():
    op.create_table(
        "events",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("participant_id", BIG, sa.ForeignKey("participants.id")),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
    )


def admission():
    op.create_table(
        "spent_ids",
        sa.Column("phase", sa.String(8), primary_key=True),
        sa.Column("external_hash", sa.String(64), primary_key=True),
    )
    op.create_table(
        "invitations",
        sa.Column("external_hash", sa.String(64), primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "visits",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def of_the_server():
    op.create_table(
        "admin_sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "notes",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def never_change(table):
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {table}_never_change BEFORE UPDATE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} are never changed'); END"
        )
    else:
        op.execute(
            f"CREATE FUNCTION {table}_never_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{table} are never changed'; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_never_change BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_never_change()"
        )
