"""What the options say about columns reaches the encoder: bags, texts, and items in few cases."""

import json

import pytest
from click.testing import CliRunner

from bayescase import CaseEncoder
from bayescase.cli.cases import FileOptions, read_cases, read_to_fit
from bayescase.cli.main import main

from .calling import SHORT, call, refused


def options_of(*args):
    """The options of `fit` as the command gets them, without running it."""
    command = main.commands["fit"]
    context = command.make_context("fit", [str(arg) for arg in args])
    data, *_ = (context.params.pop(name) for name in ("data", "clusters", "output", "force", "iterations", "chains"))
    return data, context.params


def encoded(*args):
    """(the fitted encoder, the counts of its items)."""
    cases, settings = read_to_fit(*options_of(*args))
    encoder = CaseEncoder(**settings["encoder"] or {}).fit(cases.table)
    return encoder, encoder.transform(cases.table).toarray().tolist()


MEALS = 'id,in,price\na,egg; salt,1\nb,rice,2\nc,"rice;salt;rice",1\nd,,2\n'


def test_a_column_of_lists_in_words(table):
    data = table(MEALS)
    encoder, counts = encoded(data, "--id", "id", "--bag", "in")
    assert encoder.get_feature_names_out().tolist() == ["price", "egg", "rice", "salt"]
    assert counts == [[1, 1, 0, 1], [2, 0, 1, 0], [1, 0, 2, 1], [2, 0, 0, 0]]
    assert encoder.get_params()["bags"] == {"in": ";"}
    new = read_cases(str(table("price,in\n1,salt;egg\n", "new.csv")), FileOptions()).table
    assert encoder.transform(new).toarray().tolist() == [[1, 1, 0, 1]]
    encoder, _ = encoded(data, "--id", "id", "--bag", "in", "--separator", ",")
    assert "rice;salt;rice" in encoder.get_feature_names_out()
    encoder, _ = encoded(table("in\na b\nb\n", "spaces.csv"), "--bag", "in", "--separator", " ")
    assert encoder.feature_values_ == [("a", "b")]


def test_all_columns_are_items(table):
    data = table("name,family,egg,rice,salt\na,x,1,0,1\nb,y,0,2,0\n")
    encoder, counts = encoded(data, "--id", "name", "--label", "family", "--bag", "all")
    assert encoder.feature_types_ == {"items": "bag"}
    assert counts == [[1, 0, 1], [0, 2, 0]]
    data = table("name,all\na,x|y\nb,y\n")
    encoder, _ = encoded(data, "--id", "name", "--bag", "all")  # a column is called so
    assert encoder.feature_values_ == [("x", "y")]


def test_lists_in_json_need_no_option(table):
    cases = [{"id": str(i), "in": ["salt", "egg"] if i % 2 else ["milk"], "n": i % 3} for i in range(12)]
    data = table("\n".join(map(json.dumps, cases)), "data.jsonl")
    for option in ([], ["--bag", "in"]):
        encoder, counts = encoded(data, "--id", "id", *option)
        assert encoder.feature_types_ == {"n": "integer", "in": "bag"}
        assert counts[1] == [2, 1, 0, 1]


def test_texts(table):
    data = table('group,body\nx,"The car, the engine"\ny,A god\nx,the car of GOD\ny,\n')
    encoder, counts = encoded(data, "--label", "group", "--text", "body")
    assert encoder.get_feature_names_out().tolist() == ["car", "engine", "god", "of", "the"]
    assert counts == [[1, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
    with pytest.warns(UserWarning, match=r"^1 of the 3 items of 'body' is in fewer than 2 cases and left out\.$"):
        encoder, _ = encoded(data, "--drop", "group", "--text", "body", "--stop-words", "english", "--min-cases", 2)
    assert encoder.feature_values_ == [("car", "god")]
    words = table("the\nof\n\n", "stop.txt")
    with pytest.warns(UserWarning, match="left out"):
        encoder, _ = encoded(data, "--drop", "group", "--text", "body", "--stop-words", words, "--min-cases", "body=2")
    assert encoder.feature_values_ == [("car", "god")]
    assert encoder.get_params()["stop_words"] == ["the", "of"]


def test_a_type_for_all_columns_leaves_bags_and_texts(table):
    data = table("a,b,in,body\n1,2,x;y,one two\n2,1,y,two\n")
    encoder, _ = encoded(data, "--type", "category", "--bag", "in", "--text", "body")
    assert encoder.feature_types_ == {"a": "category", "b": "category", "in": "bag", "body": "bag"}


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        (MEALS, ["--bag", "inn"], "--bag names 'inn', but the data has no such column; did you mean 'in'?"),
        (MEALS, ["--text", "body"], "--text names 'body', but the data has no such column"),
        (MEALS, ["--bag", "price"], "Column 'price' of --bag holds no lists; if columns count items, use --bag all."),
        (
            MEALS,
            ["--bag", "all"],
            "Column 'id' is to be read as counts of an item, but has the value 'a', which is not a number",
        ),
        (MEALS, ["--bag", "in", "--id", "in"], "Column 'in' is in --bag and in --id: give it to one of them."),
        (MEALS, ["--text", "in", "--label", "in"], "Column 'in' is in --text and in --label: give it to one of them."),
        (MEALS, ["--bag", "in", "--drop", "in"], "Column 'in' is in --bag, so it cannot be read as 'drop', too; change one."),
        (MEALS, ["--id", "id", "--min-cases", 3], "--min-cases is for items of bags, but the data has none."),
        (MEALS, ["--drop", "id", "--bag", "in", "--min-cases", 3], "the most common one is in 2; use --min-cases 2 or less."),
        (MEALS, ["--id", "id", "--stop-words", "english"], "--stop-words is for texts, but there are none."),
        (MEALS, ["--text", "in", "--stop-words", "nowhere.txt"], "nowhere.txt: No such file or directory."),
        ("a\n0.5\n0.1\n", ["--bag", "all"], "or read columns as absent (zero) or present (anything else) with --type count."),
        ("a,b\n1,2\n2,1\n", ["--bag", "all", "--type", "integer"], "--bag all has no column left"),
        (
            "tags\n" + "".join(f"a{i};b\n" for i in range(9)),
            [],
            "if it holds lists, read their items with --bag tags --separator ';', leave it out with --drop tags",
        ),
        (
            "a,b,c\n" + "".join(f"n{i},{i % 2},\n" for i in range(9)),
            [],
            "Columns 'a', 'c' cannot be used as they are. Column 'a' has as many values as cases (9), so it says nothing about "
            "clusters; leave all of them out with --drop a --drop c, name the cases by it, too, with --id a, ",
        ),
        (
            "x;y\n" + "".join(f"{i},5;{i % 2}\n" for i in range(9)),
            [],
            "if these are numbers with a decimal comma, write them with a point, leave it out with --drop x",
        ),
        (
            "x,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(60)) + "none,1\n",
            [],
            "most values are numbers: if 'none' means missing, say so with --missing none, leave it out with --drop x",
        ),
        (
            "a text\n" + "".join(f"This is the text number {i} and it says nothing\n" for i in range(9)),
            [],
            "if it holds texts, read their words with --text 'a text'",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_in_options(table, text, args, message):
    assert message in refused("fit", table(text), "-k", 2, *args, *SHORT)


def test_columns_that_may_not_be_meant_so_are_noted(table):
    """Numbers with a word among them, values that differ in capital letters; not if the type is said."""
    text = "t,sex\n" + "".join(f"{36 + i % 12}.5,{'mMf'[i % 3]}\n" for i in range(60)) + "high,m\n"
    noted = call("fit", table(text), "-k", 2, *SHORT).stderr
    assert (
        "Column 't' is read as words: most of its values are numbers, but 'high' is none; if it means missing, say so with"
        in noted
    )
    assert "Column 'sex' has values that differ in capital letters only, such as 'M' and 'm': they count as two." in noted
    assert call("fit", table(text), "-k", 2, *SHORT, "--out-of-core").stderr == noted
    assert "is read as words" not in call("fit", table(text), "-k", 2, *SHORT, "--type", "t=category").stderr
    assert "is read as words" not in call("fit", table(text), "-k", 2, *SHORT, "--missing", "high").stderr


def test_moves_are_for_the_sampler_that_has_them(table):
    rows = table("a,b\n" + "".join(f"{i % 2},{i % 3}\n" for i in range(12)))
    call("fit", rows, "-k", 2, *SHORT, "--moves", "clusters")
    for command in ("fit", "select"):
        assert "--moves cases needs --sampler rows." in refused(command, rows, "--moves", "cases", "--sampler", "collapsed")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--separator", ";"], "it needs --bag"),
        (["--bag", "in", "--separator", ""], "must not be empty"),
        (["--bag", "all", "--bag", "in"], "all must stand alone"),
        (["--min-cases", "few"], "'few' is not a whole number"),
    ],
    ids=str,
)
def test_wrong_options_end_with_2(table, args, message):
    assert message in refused("fit", table(MEALS), *args, code=2)


def test_help_names_the_options():
    shown = CliRunner().invoke(main, ["fit", "--help"]).stdout
    for option in ("--bag", "--separator", "--text", "--stop-words", "--min-cases"):
        assert option in shown
