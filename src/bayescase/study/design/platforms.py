"""Recruiting platforms: how they tell who comes, and where people go in the end. All of it can be edited in the design."""

from typing import NamedTuple

from .design import Admission, WishError


class Platform(NamedTuple):
    id_parameter: str
    id_pattern: str
    other_parameters: tuple[str, ...]
    address: str  # what is added to the address of the study
    ending: str | None  # where people go in the end; {code} is the code of the ending, {id} the id that they came with


PLATFORMS = {
    "prolific": Platform(
        "PROLIFIC_PID",
        "[0-9a-f]{24}",
        ("STUDY_ID", "SESSION_ID"),
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
        "https://app.prolific.com/submissions/complete?cc={code}",
    ),
    "mturk": Platform("workerId", "[A-Z0-9]{10,22}", ("assignmentId", "hitId"), "?workerId=…&assignmentId=…&hitId=…", None),
    "sona": Platform("id", "[1-9][0-9]{1,6}", (), "?id=%SURVEY_CODE%", None),
    "cloudresearch": Platform(
        "participantId",
        "[0-9A-Za-z]{8,64}",
        ("assignmentId", "projectId"),
        "?participantId=…&assignmentId=…&projectId=…",
        None,
    ),
    "none": Platform("id", "[0-9A-Za-z_-]{1,64}", (), "?id=…", None),
}


def platform(name: str) -> Platform:
    if name not in PLATFORMS:
        raise WishError(
            "{parameter} must be one of {known}, not {value!r}.", parameter="platform", known=", ".join(PLATFORMS), value=name
        )
    return PLATFORMS[name]


def admission(name: str, who: str, quota: int | None) -> Admission:
    found = platform(name)
    return Admission(who, found.id_parameter, found.id_pattern, found.other_parameters, quota, per_minute=60)
