"""A plug-in for tests of lanes: a file ``test_x.py``, wherever it is, belongs to lane ``x``."""

from tests.lanes import recording

recording.lane_of_item = lambda item: item.path.stem.removeprefix("test_")
