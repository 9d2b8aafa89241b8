"""What is kept, as tables. Times are milliseconds since 1970, UTC. Answers and responses are written once, never changed."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s"}
)

BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only in INTEGER

studies = Table(  # one row: the design that the data belong to
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("design_hash", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

participants = Table(
    "participants",
    metadata,
    Column("id", BIG, primary_key=True),
    Column("public_id", String(32), nullable=False, unique=True),  # random; the only name of a person in exports
    Column("token_hash", String(64), nullable=False, unique=True),  # SHA-256 of the token in the person's browser
    Column("receipt_hash", String(64), unique=True),  # SHA-256 of the code that the person was given; NULL once forgotten
    Column("receipt_number", Integer, nullable=False),  # how often it was given anew
    Column("external_hash", String(64)),  # keyed hash of the id at a recruiting platform
    Column("other_hashes", JSON, nullable=False),  # keyed hashes of what else the platform sent
    Column("phase", String(8), nullable=False),  # "pilot" or "live", counted apart
    Column("simulated", Boolean, nullable=False),
    Column("slot", Integer),  # None once it is released
    Column("first_slot", Integer, nullable=False),  # what the schedule was made from; never changes
    Column("status", String(16), nullable=False),  # "active", "complete", "timed out", "screened out", "withdrawn"
    Column("step", Integer, nullable=False),  # place in the flow
    Column("round", Integer, nullable=False),  # how often a block was begun again
    Column("consented_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("step_at", BigInteger, nullable=False),  # when the step began: breaks are kept by it
    Column("finished_at", BigInteger),
    UniqueConstraint("phase", "slot"),  # released slots are NULL, which are all different
    UniqueConstraint("phase", "external_hash"),  # NULL where people may take part again
)

answers = Table(
    "answers",
    metadata,
    Column("id", BIG, primary_key=True),
    Column("participant_id", BIG, ForeignKey("participants.id"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("block", Integer, nullable=False),
    Column("condition", String(64), nullable=False),
    Column("item", String(64), nullable=False),
    Column("options", JSON, nullable=False),  # groups as shown, from top to bottom
    Column("choice", Integer),  # group; NULL where the task is to rate
    Column("correct", Boolean),  # NULL where nothing is right or wrong
    Column("ratings", JSON, nullable=False),  # id of a rating → place of its label, or null
    Column("sent_at", BigInteger, nullable=False),  # when the server first sent the question
    Column("received_at", BigInteger, nullable=False),
    Column("shown_ms", Integer),  # by the browser, after the page began to load; NULL without JavaScript
    Column("first_input_ms", Integer),
    Column("submitted_ms", Integer),
    Column("hidden_ms", Integer),
    Column("blur_count", Integer),
    Column("timing_differs", Boolean, nullable=False),  # the browser's time is longer than the server's allows
    UniqueConstraint("participant_id", "round", "trial"),
)

responses = Table(  # every other form: demographics, practice, checks, questionnaire
    "responses",
    metadata,
    Column("id", BIG, primary_key=True),
    Column("participant_id", BIG, ForeignKey("participants.id"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("kind", String(16), nullable=False),  # as in schedule.Step
    Column("ref", String(64), nullable=False),
    Column("values", JSON, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    UniqueConstraint("participant_id", "round", "kind", "ref"),
)

events = Table(  # consent, gaps, resumes, releases, withdrawals, refusals: never personal data
    "events",
    metadata,
    Column("id", BIG, primary_key=True),
    Column("participant_id", BIG, ForeignKey("participants.id")),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("detail", JSON, nullable=False),
)

spent_ids = Table(  # of people who withdrew, so that they do not begin again; nothing links one to a row above
    "spent_ids",
    metadata,
    Column("phase", String(8), primary_key=True),
    Column("external_hash", String(64), primary_key=True),
)

invitations = Table(
    "invitations",
    metadata,
    Column("external_hash", String(64), primary_key=True),
    Column("created_at", BigInteger, nullable=False),
)

visits = Table(  # forms of consent that were answered with no: each is counted once
    "visits",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
)

admin_sessions = Table(
    "admin_sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("expires_at", BigInteger, nullable=False),
)

notes = Table(  # settings of the server that must be the same in all its processes
    "notes",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

Index("ix_answers_participant_id", answers.c.participant_id)
Index("ix_responses_participant_id", responses.c.participant_id)
Index("ix_events_participant_id", events.c.participant_id)
