"""Files of strangers: each is refused with an exception of the package, at once and whatever it has."""

import io
import json
import os
import random
import shutil

import anabranch as ab
import pytest
from test_run import TWO

SHORT = {**TWO, "duration": "200ms"}
#: A document nested deeper than any reader follows.
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return ab.run(SHORT, "minrtt", repeat=1).save(tmp_path_factory.mktemp("saved") / "results")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "results")


def hostile(file, kind):
    """Puts something in the place of a file."""
    file.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "endless":
            file.symlink_to("/dev/zero")
        case "link":
            file.symlink_to(__file__)
        case "sparse":
            file.touch()
            os.truncate(file, 1 << 40)
        case "folder":
            file.mkdir()
        case text:
            file.write_text(text)


KINDS = ["pipe", "endless", "link", "sparse", "folder", DEEP, "", "null", "[]", "{}", '{"schema": "x"}', '{"schema": 1}']


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_refused(folder, kind):
    hostile(folder / "results.json", kind)
    with pytest.raises(ab.ResultsError):
        ab.load(folder)
    if kind in ("pipe", "endless", "sparse", DEEP):
        with pytest.raises(ab.ResultsError):
            ab.load(folder / "results.json")


@pytest.mark.parametrize("key", ["runs", "summary", "comparisons", "diagnosis", "digest", "scenario", "sweep"])
@pytest.mark.parametrize("value", [None, 1, "x", [1], [[]], [{}], {"a": 1}])
def test_wrong_types_are_refused(folder, key, value):
    file = folder / "results.json"
    document = json.loads(file.read_text())
    if key in ("digest", "scenario") and value == "x":
        return
    document[key] = value
    file.write_text(json.dumps(document))
    with pytest.raises(ab.ResultsError):
        ab.load(folder)


@pytest.mark.parametrize("kind", [*KINDS, "time_s,x\n1,y\n", '{"paths": [], "packets": [{"path": 7}]}', '{"paths": ["a"], "packets": [7]}'])
@pytest.mark.parametrize("of", ["series", "timeline"])
def test_files_of_runs_are_refused(folder, of, kind):
    for file in list((folder / of).iterdir()):
        hostile(file, kind)
    loaded = ab.load(folder)
    try:
        table = getattr(loaded, of)
    except ab.ResultsError:
        return
    # A document without rows is one.
    assert len(table) == 0


def test_a_table_commands_no_terminal(folder):
    file = folder / "results.json"
    file.write_text(file.read_text().replace('"minrtt"', '"\\u001b[2J\\u202eminrtt"'))
    loaded = ab.load(folder)
    assert any("\x1b" in name for name in loaded.schedulers)
    for text in (str(loaded), repr(loaded)):
        assert not any(mark in text for mark in "\x1b\x9b\u202e")


def test_a_saved_copy_has_nothing_that_links_lead_to(folder, tmp_path):
    for name in ("manifest.json", "inputs.json"):
        hostile(folder / name, "link")
        with pytest.raises(ab.AnabranchError):
            ab.load(folder).save(tmp_path / "copy")
    assert not (tmp_path / "copy/manifest.json").exists()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("stored") / "store"
    ab.sweep(SHORT, {"path.lte.delay": ["20ms", "80ms"]}, "minrtt", repeat=2, store=folder, shard_runs=3, lazy=True)
    return folder


@pytest.fixture
def store(stored, tmp_path):
    return shutil.copytree(stored, tmp_path / "store")


@pytest.mark.parametrize("kind", KINDS)
def test_stores_are_refused(store, kind):
    hostile(store / "sweep.json", kind)
    with pytest.raises(ab.StoreError):
        ab.open_store(store)


@pytest.mark.parametrize("key", ["runs", "shard_runs", "schedulers", "congestion", "baselines", "scenario", "identity"])
@pytest.mark.parametrize("value", [None, -1, 0, 1.5, "x", [1], {"set": 1}, 10**30])
def test_wrong_types_in_a_store_are_refused(store, key, value):
    document = json.loads((store / "sweep.json").read_text())
    document[key] = value
    (store / "sweep.json").write_text(json.dumps(document))
    with pytest.raises(ab.StoreError):
        ab.open_store(store)


def test_a_store_reads_no_file_of_ours(store, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("1\n2\n")
    document = json.loads((store / "sweep.json").read_text())
    document["scenario"]["text"] += f'\n[[path]]\nname = "c"\ntrace = "{secret}"\ndelay = "1ms"\n'
    (store / "sweep.json").write_text(json.dumps(document))
    with pytest.raises(ab.StoreError, match=r"among the files that were kept"):
        ab.open_store(store)


def bombs():
    """Tables in the place of a shard, with what each does."""
    import pyarrow as pa

    digests = pa.array(["x"])
    return {
        "rows": pa.table({"digest": pa.DictionaryArray.from_arrays(pa.array([0] * 5_000_000, pa.int32()), digests)}),
        "bytes": pa.table({"digest": pa.array(["0" * 400_000_000] * 3)}),
        "dictionary": pa.table({"digest": pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), pa.array(["0" * 100_000]))}),
        "columns": pa.table({f"c{n}": [1.0] * 3 for n in range(20_001)}),
        "binary": pa.table({"digest": [b"0" * 100_000] * 3}),
        "nothing": pa.table({"other": [1, 2, 3]}),
        "types": pa.table({"digest": [[1], [2], [3]], "events": ["a", "b", "c"], "finished": [None] * 3}),
    }


@pytest.mark.parametrize("name", ["rows", "bytes", "dictionary", "columns", "binary", "nothing", "types"])
def test_bombs_in_shards_are_refused(store, name):
    from pyarrow import parquet

    shard = sorted(store.glob("*.parquet"))[0]
    parquet.write_table(bombs()[name], shard, compression="zstd")
    opened = ab.open_store(store)
    for ask in (opened.results, opened.summary):
        with pytest.raises(ab.StoreError, match=shard.name):
            ask()
    if name in ("rows", "bytes", "dictionary", "columns", "binary", "types"):
        with pytest.raises(ab.StoreError, match=shard.name):
            opened.dataset()


def packed(table, **options):
    """A Parquet file, and where its only column begins and ends."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False, **options)
    data = sink.getvalue().to_pybytes()
    column = parquet.read_metadata(io.BytesIO(data)).row_group(0).column(0)
    return data, column.data_page_offset, column.data_page_offset + column.total_compressed_size


def forged(table, **options):
    """A file whose footer is that of three short words, and whose column is that of ``table``."""
    import pyarrow as pa

    luck = random.Random(1)
    bomb, begins, ends = packed(table, **options)
    words = ["".join(chr(luck.randrange(33, 127)) for _ in range(ends - begins)) for _ in range(3)]
    honest, start, end = packed(pa.table({"digest": words}))
    # A reader ends with the last row, whatever follows it.
    return honest[:start] + bomb[begins:ends].ljust(end - start, b"\0") + honest[end:]


@pytest.mark.parametrize("kind", ["pages", "encoding", "garbage"])
def test_pages_that_belie_their_file_are_refused(store, kind):
    import pyarrow as pa
    from pyarrow import parquet

    shard = sorted(store.glob("*.parquet"))[0]
    long = pa.table({"digest": ["0" * 40_000_000] * 3})
    match kind:
        case "pages":
            data = forged(long, data_page_size=1 << 30)
        case "encoding":
            data = forged(long, column_encoding={"digest": "DELTA_BYTE_ARRAY"})
        case _:
            data, begins, ends = packed(pa.table({"digest": ["x"] * 3}))
            data = data[:begins] + b"\x1c" * (ends - begins) + data[ends:]
    shard.write_bytes(data)
    # The footer promises little.
    assert parquet.read_metadata(shard).row_group(0).column(0).total_uncompressed_size < 1 << 20
    opened = ab.open_store(store)
    before = pa.default_memory_pool().max_memory()
    for ask in (opened.results, opened.summary, opened.dataset):
        with pytest.raises(ab.StoreError, match=rf"{shard.name}.*page"):
            ask()
    # Nothing of it was unpacked: the pool's peak is that of the process.
    assert pa.default_memory_pool().max_memory() == before


def test_a_word_that_is_repeated_too_often_is_refused(tmp_path):
    """Each word is short, and packed they are few; in Python each row has its own."""
    import pyarrow as pa
    from pyarrow import parquet

    store = tmp_path / "store"
    ab.sweep(SHORT, {"path.lte.delay": ["20ms", "80ms"]}, "minrtt", repeat=10, store=store, shard_runs=20, lazy=True)
    shard = sorted(store.glob("*.parquet"))[0]
    words = ["0" * 60_000] * parquet.read_metadata(shard).num_rows
    parquet.write_table(pa.table({f"c{n}": words for n in range(90)}), shard, compression="zstd")
    opened = ab.open_store(store)
    for ask in (opened.results, opened.summary):
        with pytest.raises(ab.StoreError, match=rf"{shard.name}.*words"):
            ask()


@pytest.mark.parametrize("kind", ["pipe", "endless", "link", "sparse", "folder", "", "PAR1"])
def test_what_is_no_shard_is_refused(store, kind):
    shard = sorted(store.glob("*.parquet"))[0]
    hostile(shard, kind)
    opened = ab.open_store(store)
    for ask in (opened.results, opened.dataset):
        with pytest.raises(ab.StoreError, match=shard.name):
            ask()
