"""What runs have measured, as Prometheus histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily, Metric

from arbiter.values import PipelineId
from setl.model.histogram import Histogram
from setl.run.measured.distributions import MEASURES, Distributions

MeasuredHere = Mapping[PipelineId, Distributions]
"""What was measured on this node, by pipeline."""


def histograms_of(pipelines: MeasuredHere) -> Iterator[Metric]:
    """One family for each measure; a pipeline has series of what was measured on this node."""
    for measure in MEASURES:
        labels = ["channel", "pipeline", *([measure.label] if measure.label else [])]
        family = HistogramMetricFamily(measure.name, measure.text, labels=labels)
        for pipeline, found in pipelines.items():
            for (measured, label), histogram in sorted(found.items(), key=lambda item: item[0][1]):
                if measured.name == measure.name and histogram.counts:
                    key = [pipeline.channel, pipeline.pipeline, *([label] if measure.label else [])]
                    family.add_metric(key, _buckets(histogram), histogram.total)
        yield family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bound with how many values are not above it."""
    bounds = (*map(repr, histogram.bounds), "+Inf")
    below = accumulate(map(float, histogram.counts))
    return list(zip(bounds, below, strict=True))
