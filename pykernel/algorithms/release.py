"""Removing a vector from triangles and covariances, in packed storage.

A square root T of an inverse, T'T = K^-1, has a row for each vector.  The rows define coordinates in which K is I.
Removing vector r also removes one coordinate: the direction of w, which is column r of T.  Each later row is rotated
against the rows before it, so that its element in column r becomes zero: with x_i = |(w_r, .., w_i)| and g_i = sum_k
w_k (row k), for k from r to i, row i becomes

    c_i (row i) - d_i g_(i-1),  c_i = x_(i-1) / x_i,  d_i = w_i / (x_(i-1) x_i),

which are Givens rotations of row i against g_(i-1) / x_(i-1) with three products instead of four.  This form is as
stable as the one with four products: an error of g_i is proportional to x_i, and g_i is multiplied by a d that contains 1 / x_i.

The arrays ``gathered``, ``keep``, ``drop`` and ``weight`` hold g, c, d and w.  Later rows move up.  Rows are processed
in pairs, so that g is read and written half as often.
"""

from pykernel.algorithms.packed import MOST, odd, row_of
from pykernel.dialect import Index, Real, kernel, real, sqrt


@kernel
def release_vector(
    t: Real[...],
    gathered: Real[...],
    keep: Real[...],
    drop: Real[...],
    weight: Real[...],
    r: Index,
    n: Index,
    least: Real,
) -> None:
    """Remove vector r from T; later rows move up.  The result is a triangle again.  O(n^2 - r^2).

    keep, drop: c_i and d_i of the rows after r.  weight: w_i of row r and of the rows after it.  gathered: afterwards
    T'w, which is column r of T'T; it may be the same array as ``weight``, which is then overwritten.  No x_i is below
    ``least``.

    Rows are processed in pairs, so that ``gathered`` is read and written half as often.
    """
    row = row_of(r)
    own = t[row + r]
    weight[r] = own
    for j in range(r + 1):
        gathered[j] = own * t[row + j]
    square = own * own
    if square < least * least:
        square = least * least
    length = sqrt(square)
    inverse = real(1) / length
    to = row
    place = row + r
    for i in range(r + 1, n):
        place = place + i
        own = t[place]
        square = square + own * own
        grown = sqrt(square)
        shorter = real(1) / grown
        keep[i] = length * shorter
        drop[i] = own * shorter * inverse
        weight[i] = own
        length = grown
        inverse = shorter
    gathered[r] = square
    row = row + r + 1
    # this condition is never true; because of this test, GCC knows the limits and needs no loop counters
    if r < 0 or r > MOST or n > MOST:
        return
    first = r + 1
    if odd(n - first) > 0:
        c = keep[first]
        s = drop[first]
        w = weight[first]
        for j in range(r):
            a = gathered[j]
            b = t[row + j]
            t[to + j] = c * b - s * a
            gathered[j] = a + w * b
        b = t[row + first]
        t[to + r] = c * b
        gathered[first] = w * b
        to = row
        first = first + 1
        row = row + first
    for i in range(first, n, 2):
        after = row + i + 1
        c = keep[i]
        s = drop[i]
        w = weight[i]
        p = keep[i + 1]
        q = drop[i + 1]
        v = weight[i + 1]
        for j in range(r):
            a = gathered[j]
            b = t[row + j]
            d = t[after + j]
            t[to + j] = c * b - s * a
            a += w * b
            t[row + j] = p * d - q * a
            gathered[j] = a + v * d
        for k in range(i - r - 1):
            at = r + 1 + k
            a = gathered[at]
            b = t[row + at]
            d = t[after + at]
            t[to + at - 1] = c * b - s * a
            a += w * b
            t[row + at - 1] = p * d - q * a
            gathered[at] = a + v * d
        b = t[row + i]
        d = t[after + i]
        t[to + i - 1] = c * b
        b = w * b
        t[row + i - 1] = p * d - q * b
        gathered[i] = b + v * d
        d = t[after + i + 1]
        t[row + i] = p * d
        gathered[i + 1] = v * d
        to = after
        row = after + i + 2
    for j in range(n):
        t[to + j] = real(0)


@kernel
def release_coordinate(
    l: Real[...],
    gathered: Real[...],
    keep: Real[...],
    drop: Real[...],
    weight: Real[...],
    across: Real[...],
    along: Real[...],
    r: Index,
    n: Index,
    least: Real,
) -> None:
    """Remove the same coordinate as release_vector() from a factor L of a covariance L L'.  O(n^2 - r^2).

    Rows are rotated as in release_vector().  Then neighbouring columns are rotated, so that L is a triangle again.  across, along:
    cosines and sines of the column rotations.  gathered: working memory.  Each of these arrays has n elements.
    """
    row = row_of(r)
    w = weight[r]
    for j in range(r + 1):
        gathered[j] = w * l[row + j]
    to = row
    row = row + r + 1
    for i in range(r + 1, n):
        c = keep[i]
        s = drop[i]
        w = weight[i]
        for j in range(r):
            a = gathered[j]
            b = l[row + j]
            l[to + j] = c * b - s * a
            gathered[j] = a + w * b
        # in this row, columns r, r + 1, .., i - 1 are first rotated as in the rows before
        x = l[row + r]
        for j in range(r, i - 1):
            y = l[row + j + 1]
            b = across[j] * x + along[j] * y
            x = along[j] * x - across[j] * y
            a = gathered[j]
            l[to + j] = c * b - s * a
            gathered[j] = a + w * b
        a = gathered[i - 1]
        last = c * x - s * a
        a += w * x
        x = l[row + i]
        y = c * x
        x = w * x
        # the row has one element too many, which this rotation removes
        p = real(1)
        q = real(0)
        length = length_of(last, y, least)
        if length > real(0):
            inverse = real(1) / length
            p = last * inverse
            q = y * inverse
        across[i - 1] = p
        along[i - 1] = q
        l[to + i - 1] = length
        gathered[i - 1] = p * a + q * x
        gathered[i] = q * a - p * x
        to = row
        row = row + i + 1
    for j in range(n):
        l[to + j] = real(0)


@kernel
def length_of(x: Real, y: Real, least: Real) -> Real:
    """The length of (x, y).  The result is 0 if the length is at most ``least``.  O(1)."""
    length = sqrt(x * x + y * y)
    if length > least:
        return length
    return real(0)


@kernel
def release_coordinate_of(
    s: Real[...],
    gathered: Real[...],
    keep: Real[...],
    drop: Real[...],
    weight: Real[...],
    r: Index,
    n: Index,
) -> None:
    """Remove the same coordinate as release_vector() from a packed covariance S; later rows move up.  O(n^2 - r^2).

    gathered: working memory for n elements.

    Rows and columns are rotated in one pass over half of S.  If b is the rotated row i, the rotation of columns needs
    g = sum_k w_k b_k.  On the diagonal, g = c_i a - d_i both, where a = sum_k w_k s_ik is gathered from column i of S,
    and both = sum_kl w_k w_l s_kl.  In these sums, k and l run from r to i - 1.  So a = (g + d_i both) / c_i needs no
    further sum.  A small c_i does no harm: the errors of a are bounded by x_i, and a is multiplied by d_(i+1), which is
    at most 1 / x_i.
    """
    row = row_of(r)
    first = weight[r]
    for j in range(r + 1):
        gathered[j] = first * s[row + j]
    both = first * gathered[r]
    to = row
    row = row + r + 1
    # this condition is never true; because of this test, GCC knows the limits and needs no loop counters
    if r < 0 or r > MOST or n > MOST:
        return
    for i in range(r + 1, n, 2):
        after = row + i + 1
        c = keep[i]
        d = drop[i]
        w = weight[i]
        a = gathered[r]
        x = s[row + r]
        b = c * x - d * a
        a += w * x
        g = first * b
        if i + 1 < n:
            # rows are processed in pairs, so that gathered is read and written half as often
            p = keep[i + 1]
            q = drop[i + 1]
            v = weight[i + 1]
            for j in range(r):
                e = gathered[j]
                x = s[row + j]
                y = s[after + j]
                s[to + j] = c * x - d * e
                e += w * x
                s[row + j] = p * y - q * e
                gathered[j] = e + v * y
            y = s[after + r]
            b = p * y - q * a
            gathered[r] = a + v * y
            h = first * b
            for k in range(i - r - 1):
                at = r + 1 + k
                a = gathered[at]
                x = s[row + at]
                y = s[after + at]
                b = c * x - d * a
                a += w * x
                gathered[at] = a + v * y
                y = p * y - q * a
                f = keep[at]
                z = drop[at]
                a = weight[at]
                s[to + at - 1] = f * b - z * g
                s[row + at - 1] = f * y - z * h
                g += a * b
                h += a * y
            x = s[row + i]
            y = s[after + i]
            a = (g + d * both) * (real(1) / c)
            s[to + i - 1] = c * (c * x - d * a) - d * g
            both += w * (a + a + w * x)
            a += w * x
            b = p * y - q * a
            gathered[i] = a + v * y
            s[row + i - 1] = c * b - d * h
            h += w * b
            y = s[after + i + 1]
            a = (h + q * both) * (real(1) / p)
            s[row + i] = p * (p * y - q * a) - q * h
            both += v * (a + a + v * y)
            gathered[i + 1] = a + v * y
            to = after
        else:
            for j in range(r):
                s[to + j] = c * s[row + j] - d * gathered[j]
            for j in range(r + 1, i):
                b = c * s[row + j] - d * gathered[j]
                s[to + j - 1] = keep[j] * b - drop[j] * g
                g += weight[j] * b
            a = (g + d * both) * (real(1) / c)
            s[to + i - 1] = c * (c * s[row + i] - d * a) - d * g
            to = row
        row = after + i + 2
    for j in range(n):
        s[to + j] = real(0)
