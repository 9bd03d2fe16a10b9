"""State and parameters of the signal stage."""

from enum import IntEnum

from pykernel.dialect import (
    DIM,
    Bool,
    Config,
    Index,
    Int,
    Model,
    Real,
    Struct,
    Uint16,
    absolute,
    between,
    extent,
    kernel,
)

CHANNELS = extent("CHANNELS", "number of channels of a raw sample", public=True)
BLOCKS = extent("BLOCKS", "number of blocks in a window")
FEATURES_KEPT = extent("FEATURES_KEPT", "number of rows that are kept for lags")
MEASURES = extent("MEASURES", "number of measures of a window, or number of channels if there is no window")
PAIRS = extent("PAIRS", "number of pairs of channels whose correlation is measured")
PERIODS = extent("PERIODS", "number of periods")
RAW_KEPT = extent("RAW_KEPT", "number of raw samples in a window, which are kept for its spectrum")
RAW_HALF = extent("RAW_HALF", "half of RAW_KEPT")
RAW_QUARTER = extent("RAW_QUARTER", "a quarter of RAW_KEPT")
LEVELS = extent("LEVELS", "number of pairs of levels in the Fourier transform; single levels do not count")


class SignalStatus(IntEnum):
    """Statuses of calls that take raw samples or use their features."""

    READY = 40  # there are new features; nothing was learned
    GATHERING = 41  # more raw samples are needed before there are new features
    PASSED_OVER = 42  # the raw sample was taken; the model declined to learn from it
    REFUSED_STATE = -9  # a count is out of its range: init was never called, or the memory was overwritten
    REFUSED_SAMPLE = -40  # a raw sample is not finite, or is too large; nothing was taken
    REFUSED_GAP = -41  # the number of missing samples is negative
    NO_FEATURES = -42  # there are no features yet, so there is no result
    NO_WINDOW = -43  # no features wait for a label


class Signal(Struct):
    """Raw samples, sums and measures from which features are computed."""

    features: Real[DIM]  # the newest features, which are the model's inputs
    kept: Real[FEATURES_KEPT, MEASURES]  # measures of the latest steps; row ``latest`` is the newest
    # for each block of the window: mean, and sums of powers of the deviations from it
    block_mean: Real[BLOCKS, CHANNELS]
    power2: Real[BLOCKS, CHANNELS]
    power3: Real[BLOCKS, CHANNELS]
    power4: Real[BLOCKS, CHANNELS]
    lowest: Real[BLOCKS, CHANNELS]
    highest: Real[BLOCKS, CHANNELS]
    tilt: Real[BLOCKS, CHANNELS]  # sum of (time - block's middle) times (sample - block's first sample)
    changes: Real[BLOCKS, CHANNELS]  # sum of |differences| within the block
    border: Real[BLOCKS, CHANNELS]  # |difference| between the block's first sample and the sample before it
    crossed: between(Int[BLOCKS, CHANNELS], 0, "hop_last")  # changes of sign within the block
    # 1: the signs of the block's first sample and of the previous sample differ
    crossed_border: between(Int[BLOCKS, CHANNELS], 0, 1)
    together: Real[BLOCKS, PAIRS]  # for each pair of channels: sum of products of deviations from the channels' means
    # for the block that is being gathered: first sample, and sums of powers of the differences from it
    first: Real[CHANNELS]
    last: Real[CHANNELS]  # the previous sample
    sum1: Real[CHANNELS]
    sum2: Real[CHANNELS]
    sum3: Real[CHANNELS]
    sum4: Real[CHANNELS]
    sum12: Real[PAIRS]
    raw_kept: Real[RAW_KEPT, CHANNELS]  # the latest raw samples; the oldest is at raw_at
    clock: between(Index[PERIODS], 0, 2**24 - 1)  # samples since each period began
    raw_at: between(Index, 0, RAW_KEPT - 1)  # where the next raw sample will be kept
    block: between(Index, 0, BLOCKS - 1)  # position of the block that is being gathered
    blocks: between(Index, 0, BLOCKS)  # number of whole blocks since the last gap; counting stops at a full window
    gathered: between(Index, 0, "hop_last")  # number of samples in the block that is being gathered
    begun: between(Index, 0, 1)  # 1: a sample has been taken since the last gap
    latest: between(Index, 0, FEATURES_KEPT - 1)
    steps: between(Index, 0, FEATURES_KEPT)  # number of rows kept since the last gap
    ready: between(Index, 0, 1)  # 1: there are features
    waiting: between(Index, 0, 1)  # 1: the newest features wait for their label


class SignalWork(Struct):
    """Intermediate results of the signal stage."""

    earlier: Real[DIM]  # features of the step whose label has arrived
    measured: Real[MEASURES]  # the measures of the window
    re: Real[RAW_HALF + 1]  # real parts in the Fourier transform; then the power of each frequency above zero
    im: Real[RAW_HALF]
    whole_mean: Real[CHANNELS]  # for the window: mean, and sums of powers of the deviations from it
    whole2: Real[CHANNELS]
    whole3: Real[CHANNELS]
    whole4: Real[CHANNELS]


class StepConfig(Config):
    """Parameters that the floating-point and int16 stages share, derived from a spec by ``pykernel.spec.signal``."""

    windows: bool  # whether measures are computed from windows, not from single samples
    has_extremes: bool  # whether some measure needs the smallest or the largest sample
    has_mean: bool  # whether measures of this kind are used
    has_rms: bool
    has_std: bool
    has_min: bool
    has_max: bool
    has_range: bool
    has_crossings: bool
    has_change: bool
    has_band: bool
    has_spectrum: bool  # whether raw samples are kept, for measures of the spectrum
    has_differences: bool  # whether some features are differences from earlier steps
    has_averages: bool  # whether some features are means of the latest steps
    has_periods: bool  # whether some features are phases of periods
    awaits: bool  # whether labels can be passed later, by calling label()
    hop_last: Index  # number of samples in a block, minus 1
    oldest: Index  # age, in steps, of the oldest measures from which features are computed
    ahead: Index  # number of steps from features to their label
    label_measure: Index  # index of the measure that is the label
    measure_of: Int[MEASURES]  # index of the channel, or of the pair of channels, that is measured
    mean_first: Index  # first measure of this kind; all measures of a kind are adjacent
    mean_after: Index  # first measure after those of this kind
    rms_first: Index
    rms_after: Index
    std_first: Index
    std_after: Index
    min_first: Index
    min_after: Index
    max_first: Index
    max_after: Index
    range_first: Index
    range_after: Index
    crossings_first: Index
    crossings_after: Index
    change_first: Index
    change_after: Index
    band_first: Index
    band_after: Index
    band_first_bin: Int[MEASURES]  # first frequency of a band
    band_after_bin: Int[MEASURES]  # first frequency after the band
    reversed: Uint16[RAW_QUARTER]  # positions with their bits in reverse order
    made_of: Int[DIM]  # the measure from which a feature is made
    made_steps: Int[DIM]  # age of the measure in steps, or number of steps that are averaged
    difference_first: Index  # index of the first feature that is a difference; lags come before differences
    average_first: Index
    phase_first: Index  # index of the first feature that is a phase; each period has two features, cosine and sine
    period: Int[PERIODS]  # length of each period, in samples
    period_back: Int[PERIODS]  # phase advance, in samples, since the features whose label arrives now


class SignalConfig(Config):
    """Parameters of the floating-point stage, derived from a spec by ``pykernel.spec.signal``."""

    has_sums: bool  # whether some measure needs sums of samples
    has_power2: bool  # whether some measure needs sums of squares
    has_power3: bool  # whether some measure needs sums of third powers
    has_power4: bool  # whether some measure needs sums of fourth powers
    has_crest: bool  # whether measures of this kind are used
    has_skewness: bool
    has_kurtosis: bool
    has_slope: bool
    has_correlation: bool
    has_centroid: bool
    has_dominant: bool
    has_flatness: bool
    has_single_level: bool  # whether the Fourier transform has an odd number of levels after the first
    takes_log: bool  # whether the measure of a band is the logarithm of its power
    sample_max_abs: Real  # largest |raw sample| that is accepted
    hop: Index  # number of samples in a block: from one step to the next
    block_share: Real  # 1 / hop
    window_share: Real  # 1 / samples in a window
    gap_share: Real  # 1 / (samples in a window - 1)
    slope_share: Real  # 1 / sum of (time - middle)^2 over a window
    block_step: Real  # number of samples from the middle of one block to that of the next
    measure_limit: Real[MEASURES]  # largest |measure|
    crest_first: Index  # first measure of this kind
    crest_after: Index  # first measure after those of this kind
    skewness_first: Index
    skewness_after: Index
    kurtosis_first: Index
    kurtosis_after: Index
    slope_first: Index
    slope_after: Index
    correlation_first: Index
    correlation_after: Index
    centroid_first: Index
    centroid_after: Index
    dominant_first: Index
    dominant_after: Index
    flatness_first: Index
    flatness_after: Index
    power_scale: Real  # 2 / (window times the sum of the squared weights)
    power_share: Real  # 1 / number of frequencies above zero
    log_scale: Real  # 1 / the power whose logarithm is 1
    bin_width: Real  # distance from one frequency to the next, in Hz
    cosines: Real[RAW_HALF]  # cos(2 pi c / window)
    spans: Int[LEVELS]  # for each pair of levels of the transform: spacing of the four numbers that are combined
    groups: Int[LEVELS]  # for each pair of levels: number of groups of four numbers
    pair_first: Int[PAIRS]
    pair_second: Int[PAIRS]
    made_share: Real[DIM]  # 1 / number of steps that are averaged
    made_limit: Real[DIM]  # largest |feature|
    period_share: Real[PERIODS]  # 1 / samples in a period

    tunable = frozenset("sample_max_abs".split())


class SignalModel(Model):
    parts = Signal, SignalWork, StepConfig, SignalConfig


@kernel
def acceptable_sample(m: SignalModel, sample: Real[CHANNELS]) -> Bool:
    """Whether the value of every channel is a number within the limit."""
    for j in range(len(sample)):
        # not "if (.. > limit)": NaN must fail
        if not (absolute(sample[j]) <= m.sample_max_abs):
            return False
    return True
