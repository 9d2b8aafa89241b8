"""The analysis as a script for R, with lme4: maximal models, for whoever wants to check ours with other software."""

from itertools import combinations

from ..design.design import Design

HEAD = """# {title}: mixed models for the tables of this folder.
# Design {hash}. Run it in this folder: Rscript analysis.R
# Needs lme4 (install.packages("lme4")); with lmerTest there are p values of log times and ratings, too.

library(lme4)
if (requireNamespace("lmerTest", quietly = TRUE)) library(lmerTest)

phase <- "{phase}"  # or "pilot"
simulated <- {simulated}  # count simulated people, too?

read <- function(file) read.csv(file, colClasses = "character", na.strings = "")
people <- read("people.csv")
counts <- people$status == "complete" & people$phase == phase & (simulated | people$simulated == "false"){attention}
people <- people[counts, ]
d <- read("answers.csv")
d <- d[d$participant %in% people$participant & d$superseded == "false", ]
d$seconds <- as.numeric(d$seconds)
d$block <- factor(d$block)
cat(nrow(people), "people,", nrow(d), "answers\\n")

# Contrasts of conditions as numbers, so that slopes can be without correlations. With two conditions c1 is their difference.
condition <- factor(d$condition, levels = c({conditions}))
contrasts(condition) <- contr.sum({k}){half}
d[c({columns})] <- model.matrix(~ condition)[, -1]

# The largest model that the design supports; smaller ones only where it cannot be fitted.
slopes <- c({slopes})
largest <- function(fit) {{
  for (n in seq(length(slopes), 0)) {{
    random <- paste(c({intercepts}, slopes[seq_len(n)]), collapse = " + ")
    model <- tryCatch(fit(random), error = function(e) NULL)
    if (!is.null(model)) {{
      cat("random effects:", random, "\\n")
      return(model)
    }}
  }}
  stop("no model could be fitted")
}}
linear <- function(values) {{
  d$y <- values
  print(summary(largest(function(random) lmer(
    as.formula(paste("y ~ {fixed} +", random)), data = d, control = lmerControl(optimizer = "bobyqa")))), corr = FALSE)
}}
"""
SLOPE = '"(0 + {columns} || {group})"'
ACCURACY = """
cat("\\n--- right answers, in log-odds ---\\n")
d$right <- d$correct == "true"
print(summary(largest(function(random) glmer(
  as.formula(paste("right ~ {fixed} +", random)), data = d, family = binomial,
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e5))))), corr = FALSE)
"""
TIME = """
cat("\\n--- log seconds ---\\n")
linear(ifelse(d$seconds > 0, log(d$seconds), NA))
"""
PER_ITEM = """
cat("\\n--- {id}, rated with every answer ---\\n")
linear(as.numeric(d$rating_{name}))
"""
PER_PART = """
cat("\\n--- {id}, rated after every part: {a} against {b} ---\\n")
print(wilcox.test(as.numeric(people$rating_{name}_{x}), as.numeric(people$rating_{name}_{y}), paired = {paired}, exact = FALSE))
"""


def r_script(design: Design, phase: str = "live", simulated: bool = False) -> str:
    """For the tables of an export."""
    ids = [condition.id for condition in design.conditions]
    crossed, within = design.mode == "crossed", design.layout == "within"
    groups = (["participant"] if within else []) + ["explanation"] + ([] if not crossed or design.explains_items else ["item"])
    plain = ["participant", "item"] + ([] if design.explains_items else ["explanation"])
    columns = [f"c{k}" for k in range(1, len(ids))]
    fixed = " + ".join([*columns, *(["block"] if within else [])])
    text = HEAD.format(
        title=" ".join(design.title.split()),
        hash=design.hash,
        phase=phase,
        simulated="TRUE" if simulated else "FALSE",
        attention=' & people$checks_failed == "0"' if "attention" in design.plan.leave_out else "",
        conditions=", ".join(f'"{id}"' for id in ids),
        k=len(ids),
        half=" / 2" if len(ids) == 2 else "",
        columns=", ".join(f'"{column}"' for column in columns),
        slopes=", ".join(SLOPE.format(columns=" + ".join(columns), group=group) for group in groups),
        intercepts=", ".join(f'"(1 | {group})"' for group in plain),
        fixed=fixed,
    )
    text += ACCURACY.format(fixed=fixed) if design.task != "rate" else ""
    text += TIME
    text += "".join(PER_ITEM.format(id=one.id, name=r_name(one.id)) for one in design.item_ratings)
    for one in design.block_ratings:
        for a, b in combinations(ids, 2):
            sides = {"a": a, "b": b, "x": r_name(a), "y": r_name(b), "paired": "TRUE" if within else "FALSE"}
            text += PER_PART.format(id=one.id, name=r_name(one.id), **sides)
    return text


def r_name(id: str) -> str:
    """As read.csv has it: - becomes a dot."""
    return id.replace("-", ".")
