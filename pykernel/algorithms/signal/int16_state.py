"""State and parameters of the int16 signal stage."""

from pykernel.algorithms.signal.state import (
    BLOCKS,
    CHANNELS,
    FEATURES_KEPT,
    MEASURES,
    PERIODS,
    RAW_HALF,
    RAW_KEPT,
    RAW_QUARTER,
    StepConfig,
)
from pykernel.dialect import DIM, Config, Index, Int, Int16, Model, Struct, Uint8, Uint16, Word, between

FULL = 32767
"""The largest magnitude of a raw sample and of a feature, in counts."""
SUM_MOST = 32767 * 65536
"""The largest magnitude of a sum of a window's samples."""
WAVE_MOST = 1073741823
"""The largest magnitude of a real or imaginary part in the Fourier transform."""


class Int16Signal(Struct):
    """Raw samples, sums and measures from which features are computed, in counts."""

    # sum of the samples of each block of the window
    total: between(Int[BLOCKS, CHANNELS], "-block_most", "block_most")
    square_high: Word[BLOCKS, CHANNELS]  # for each block: sum of the squares' upper 16 bits, in units of 2^16
    square_low: Word[BLOCKS, CHANNELS]  # for each block: sum of the squares' lower 16 bits

    changes: Word[BLOCKS, CHANNELS]  # sum of |differences| within the block
    crossed: between(Int[BLOCKS, CHANNELS], 0, "hop_last")  # changes of sign within the block
    clock: between(Index[PERIODS], 0, 65535)  # samples since each period began
    raw_at: between(Index, 0, RAW_KEPT - 1)  # where the next raw sample will be kept
    block: between(Index, 0, BLOCKS - 1)  # position of the block that is being gathered
    blocks: between(Index, 0, BLOCKS)  # number of whole blocks since the last gap; counting stops at a full window
    gathered: between(Index, 0, "hop_last")  # number of samples in the block that is being gathered
    begun: between(Index, 0, 1)  # 1: a sample has been taken since the last gap
    latest: between(Index, 0, FEATURES_KEPT - 1)
    steps: between(Index, 0, FEATURES_KEPT)  # number of rows kept since the last gap
    ready: between(Index, 0, 1)  # 1: there are features
    waiting: between(Index, 0, 1)  # 1: the newest features wait for their label
    features: between(Int16[DIM], -32767, 32767)  # the newest features, which are the model's inputs
    # measures of the latest steps; row ``latest`` is the newest
    kept: between(Int16[FEATURES_KEPT, MEASURES], -32767, 32767)
    lowest: between(Int16[BLOCKS, CHANNELS], -32767, 32767)
    highest: between(Int16[BLOCKS, CHANNELS], -32767, 32767)
    # |difference| between the block's first sample and the sample before it
    border: between(Uint16[BLOCKS, CHANNELS], 0, 65534)
    last: between(Int16[CHANNELS], -32767, 32767)  # the previous sample
    raw_kept: between(Int16[RAW_KEPT, CHANNELS], -32767, 32767)  # the latest raw samples; the oldest is at raw_at
    crossed_border: between(Uint8[BLOCKS, CHANNELS], 0, 1)  # 1: the block begins with a change of sign


class Int16SignalWork(Struct):
    """Intermediate results of the signal stage."""

    re: between(Int[RAW_HALF + 1], -WAVE_MOST, WAVE_MOST)  # real parts in the Fourier transform
    im: between(Int[RAW_HALF], -WAVE_MOST, WAVE_MOST)
    lifted: between(Int16[CHANNELS], -32767, 32767)  # a raw sample in the counts from which measures are computed
    earlier: between(Int16[DIM], -32767, 32767)  # features of the step whose label has arrived
    measured: between(Int16[MEASURES], -32767, 32767)  # the measures of the window


class Int16SignalConfig(Config):
    """Parameters of the int16 signal stage, derived from a spec by ``pykernel.spec.signal_int16``."""

    has_squares: bool  # whether a measure needs sums of squares
    has_coarse: bool  # whether some features are divided by 2^made_shift, to make room for subtracting their centers
    sample_most: Int16[CHANNELS]  # largest |raw sample| that is accepted
    fill: Int16[CHANNELS]  # power of two by which a raw sample is multiplied before measures are computed
    block_most: Index  # largest |sum| of a block
    window: Index
    label_factor: Index  # one count of the measure that is forecast, in units of 1 / LABEL_SCALE, times 2^label_places
    label_places: Index
    band_factor: Index  # factor that converts the root of a sum of powers to counts, times 2^33
    fourier_levels: Index  # levels of the Fourier transform
    cosines: Uint16[RAW_QUARTER + 1]  # cos(2 pi c / window) in units of 2^-15, for a quarter of a turn
    has_narrow: bool  # whether the model accepts only a part of the range of some features
    made_low: Int16[DIM]  # smallest feature that the model accepts
    made_high: Int16[DIM]  # largest feature that the model accepts
    made_shift: Uint8[DIM]  # log2 of the number by which a feature is divided
    period_share: Int[PERIODS]  # 2^31 / samples in a period


class Int16SignalModel(Model):
    parts = Int16Signal, Int16SignalWork, StepConfig, Int16SignalConfig
