"""Triangles and symmetric matrices in packed storage.

Lower triangles and symmetric matrices are stored row by row, up to the diagonal.  Upper triangles are stored row by
row, from the diagonal on.  The first row of an upper triangle has ``width`` places, even if fewer are in use.
"""

from pykernel.algorithms.elementary import bounded
from pykernel.dialect import Index, Real, floor_shift, kernel, real, sqrt


@kernel
def row_of(i: Index) -> Index:
    """The place where row i starts: i (i + 1) / 2."""
    start = 0
    for j in range(i):
        start = start + j + 1
    return start


@kernel
def substitute_forward(l: Real[...], z: Real[...], n: Index, limit: Real) -> None:
    """Replace z by L^-1 z.  l has the reciprocals of L's diagonal.  No result exceeds the limit.  O(n^2 / 2).

    Two rows in a turn, so that z is read half as often.
    """
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        total = z[i]
        if i + 1 < n:
            other = z[i + 1]
            for j in range(i):
                both = z[j]
                total = total - l[row + j] * both
                other = other - l[after + j] * both
            first = bounded(total * l[row + i], limit)
            z[i] = first
            z[i + 1] = bounded((other - l[after + i] * first) * l[after + i + 1], limit)
        else:
            for j in range(i):
                total = total - l[row + j] * z[j]
            z[i] = bounded(total * l[row + i], limit)
        row = after + i + 2


@kernel
def substitute_backward(l: Real[...], z: Real[...], out: Real[...], n: Index, limit: Real) -> None:
    """Write L'^-1 z to out, which may be z.  l has the reciprocals of L's diagonal.  out is limited.  O(n^2 / 2).

    Two rows in a turn, so that out is read and written half as often.
    """
    for j in range(n):
        out[j] = z[j]
    row = row_of(n)
    for t in range(0, n, 2):
        i = n - 1 - t
        row = row - i - 1
        last = bounded(out[i] * l[row + i], limit)
        out[i] = last
        if i > 0:
            before = row - i
            first = bounded((out[i - 1] - l[row + i - 1] * last) * l[before + i - 1], limit)
            out[i - 1] = first
            for k in range(i - 1):
                out[k] = out[k] - l[row + k] * last - l[before + k] * first
            row = before


@kernel
def factorise(
    g: Real[...], l: Real[...], n: Index, shift: Real, part: Real, least: Real, instead: Real, limit: Real
) -> None:
    """Factorise g + shift I = L L'.  Write L to l, which may be g, with the reciprocals of L's diagonal.  O(n^3 / 6).

    If a pivot is at most least + part g_ii, ``instead`` is used as its reciprocal; 0 gives a column of zeros.
    No element beside the diagonal exceeds the limit, for any g.
    """
    row = 0
    for i in range(n):
        other = 0
        pivot = g[row + i] + shift
        for j in range(i):
            total = g[row + j]
            for k in range(j):
                total = total - l[row + k] * l[other + k]
            total = bounded(total * l[other + j], limit)
            l[row + j] = total
            pivot = pivot - total * total
            other = other + j + 1
        l[row + i] = real(1) / sqrt(pivot) if pivot > least + part * g[row + i] else instead
        row = row + i + 1


@kernel
def symmetric_times(p: Real[...], z: Real[...], out: Real[...], n: Index) -> None:
    """Write P z to out, for the first n rows and columns of a symmetric P.  O(n^2).

    Two rows in a turn, so that z and out are read half as often.
    """
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        a = z[i]
        if i + 1 < n:
            b = z[i + 1]
            first = p[row + i] * a + p[after + i] * b
            second = p[after + i] * a + p[after + i + 1] * b
            for j in range(i):
                first += p[row + j] * z[j]
                second += p[after + j] * z[j]
                out[j] += p[row + j] * a + p[after + j] * b
            out[i] = first
            out[i + 1] = second
        else:
            first = p[row + i] * a
            for j in range(i):
                first += p[row + j] * z[j]
                out[j] += p[row + j] * a
            out[i] = first
        row = after + i + 2


@kernel
def symmetric_downdate(p: Real[...], g: Real[...], keep: Real, share: Real, n: Index) -> None:
    """Replace a symmetric P by keep P - share g g', for the first n rows and columns.  O(n^2 / 2).

    Two rows in a turn, so that g is read half as often.
    """
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        step = share * g[i]
        if i + 1 < n:
            other = share * g[i + 1]
            for j in range(i + 1):
                both = g[j]
                p[row + j] = keep * p[row + j] - step * both
                p[after + j] = keep * p[after + j] - other * both
            p[after + i + 1] = keep * p[after + i + 1] - other * g[i + 1]
        else:
            for j in range(i + 1):
                p[row + j] = keep * p[row + j] - step * g[j]
        row = after + i + 2


@kernel
def symmetric_row(p: Real[...], i: Index, out: Real[...], n: Index) -> None:
    """Write row i of a symmetric P to out, for the first n columns.  O(n)."""
    at = row_of(i)
    for j in range(n):
        if j < i:
            out[j] = p[at + j]
        elif j == i:
            at = at + i
            out[j] = p[at]
        else:
            at = at + j
            out[j] = p[at]


@kernel
def symmetric_clear(p: Real[...], i: Index, n: Index) -> None:
    """Set row and column i of a symmetric P to zero, for the first n rows and columns.  O(n)."""
    at = row_of(i)
    for j in range(i + 1):
        p[at + j] = real(0)
    at = at + i
    for j in range(i + 1, n):
        at = at + j
        p[at] = real(0)


# ------------------------------------------------------------------------------------------------- lower triangles L


@kernel
def lower_times(l: Real[...], z: Real[...], out: Real[...], n: Index) -> None:
    """Write L z to out, which is not z.  O(n^2 / 2).

    Two rows in a turn, so that z is read half as often.
    """
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        first = real(0)
        if i + 1 < n:
            second = real(0)
            for j in range(i + 1):
                first += l[row + j] * z[j]
                second += l[after + j] * z[j]
            out[i] = first
            out[i + 1] = second + l[after + i + 1] * z[i + 1]
        else:
            for j in range(i + 1):
                first += l[row + j] * z[j]
            out[i] = first
        row = after + i + 2


@kernel
def lower_transposed_times(l: Real[...], z: Real[...], out: Real[...], n: Index) -> None:
    """Write L'z to out, which may be z.  O(n^2 / 2).

    Two rows in a turn, so that out is read and written half as often.
    """
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        a = z[i]
        if i + 1 < n:
            b = z[i + 1]
            for j in range(i):
                out[j] += l[row + j] * a + l[after + j] * b
            out[i] = l[row + i] * a + l[after + i] * b
            out[i + 1] = l[after + i + 1] * b
        else:
            for j in range(i):
                out[j] += l[row + j] * a
            out[i] = l[row + i] * a
        row = after + i + 2


@kernel
def lower_transposed_twice(
    l: Real[...], y: Real[...], z: Real[...], out: Real[...], other: Real[...], n: Index
) -> None:
    """Write L'y to out, and L'z to ``other``.  Both may be what they are made of.  O(n^2).  L is read once."""
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        a = y[i]
        c = z[i]
        if i + 1 < n:
            b = y[i + 1]
            d = z[i + 1]
            for j in range(i):
                upper = l[row + j]
                lower = l[after + j]
                out[j] += upper * a + lower * b
                other[j] += upper * c + lower * d
            out[i] = l[row + i] * a + l[after + i] * b
            other[i] = l[row + i] * c + l[after + i] * d
            out[i + 1] = l[after + i + 1] * b
            other[i + 1] = l[after + i + 1] * d
        else:
            for j in range(i):
                upper = l[row + j]
                out[j] += upper * a
                other[j] += upper * c
            out[i] = l[row + i] * a
            other[i] = l[row + i] * c
        row = after + i + 2


@kernel
def lower_column_norms(l: Real[...], out: Real[...], n: Index) -> None:
    """Write the sum of squares of each column of L to out.  O(n^2 / 2)."""
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        if i + 1 < n:
            for j in range(i):
                out[j] += l[row + j] * l[row + j] + l[after + j] * l[after + j]
            out[i] = l[row + i] * l[row + i] + l[after + i] * l[after + i]
            out[i + 1] = l[after + i + 1] * l[after + i + 1]
        else:
            for j in range(i):
                out[j] += l[row + j] * l[row + j]
            out[i] = l[row + i] * l[row + i]
        row = after + i + 2


@kernel
def lower_column(l: Real[...], r: Index, out: Real[...], n: Index) -> None:
    """Write column r of L'L to out.  O(n^2 - r^2).

    Two rows in a turn, so that out is read and written half as often.
    """
    row = row_of(r)
    a = l[row + r]
    for j in range(r + 1):
        out[j] = a * l[row + j]
    row = row + r + 1
    for i in range(r + 1, n, 2):
        after = row + i + 1
        a = l[row + r]
        if i + 1 < n:
            b = l[after + r]
            for j in range(i):
                out[j] += a * l[row + j] + b * l[after + j]
            out[i] = a * l[row + i] + b * l[after + i]
            out[i + 1] = b * l[after + i + 1]
        else:
            for j in range(i):
                out[j] += a * l[row + j]
            out[i] = a * l[row + i]
        row = after + i + 2


# A square root T of an inverse, T'T = K^-1, has a row for each vector; the rows are coordinates in which K is I.
# A vector that goes takes a coordinate along: rotations gather what the rows have of the vector's column in one of them.


@kernel
def length_of(x: Real, y: Real, least: Real) -> Real:
    """The length of (x, y); 0 if it is at most ``least``.  O(1)."""
    length = sqrt(x * x + y * y)
    if length > least:
        return length
    return real(0)


@kernel
def turn_of(t: Real[...], at: Index, x: Real, cosine: Real[...], sine: Real[...], i: Index, least: Real) -> Real:
    """Cosine and sine, number i, of the rotation that takes (x, t[at]) to its length, which is returned.  O(1)."""
    cosine[i] = real(1)
    sine[i] = real(0)
    length = length_of(x, t[at], least)
    if length > real(0):
        inverse = real(1) / length
        cosine[i] = x * inverse
        sine[i] = t[at] * inverse
        return length
    return x


@kernel
def release_vector(
    t: Real[...], carry: Real[...], cosine: Real[...], sine: Real[...], r: Index, n: Index, least: Real
) -> None:
    """Take vector r out of T, in which later rows move up.  What is left is a triangle again.  O(n^2 - r^2).

    cosine, sine: how row i was turned against what was gathered before, from i = r + 1 on.  carry: of n elements; lost.
    Two rows in a turn, so that carry is read and written half as often.
    """
    row = row_of(r)
    for j in range(r + 1):
        carry[j] = t[row + j]
    x = carry[r]
    to = row
    row = row + r + 1
    for i in range(r + 1, n, 2):
        after = row + i + 1
        x = turn_of(t, row + r, x, cosine, sine, i, least)
        c = cosine[i]
        s = sine[i]
        if i + 1 < n:
            x = turn_of(t, after + r, x, cosine, sine, i + 1, least)
            p = cosine[i + 1]
            q = sine[i + 1]
            for j in range(r):
                a = carry[j]
                b = t[row + j]
                d = t[after + j]
                t[to + j] = c * b - s * a
                a = c * a + s * b
                t[row + j] = p * d - q * a
                carry[j] = p * a + q * d
            for j in range(r + 1, i):
                a = carry[j]
                b = t[row + j]
                d = t[after + j]
                t[to + j - 1] = c * b - s * a
                a = c * a + s * b
                t[row + j - 1] = p * d - q * a
                carry[j] = p * a + q * d
            b = t[row + i]
            d = t[after + i]
            t[to + i - 1] = c * b
            b = s * b
            t[row + i - 1] = p * d - q * b
            carry[i] = p * b + q * d
            d = t[after + i + 1]
            t[row + i] = p * d
            carry[i + 1] = q * d
            to = after
        else:
            for j in range(r):
                t[to + j] = c * t[row + j] - s * carry[j]
            for j in range(r + 1, i):
                t[to + j - 1] = c * t[row + j] - s * carry[j]
            t[to + i - 1] = c * t[row + i]
            to = row
        row = after + i + 2
    for j in range(n):
        t[to + j] = real(0)


@kernel
def release_coordinate(
    l: Real[...],
    carry: Real[...],
    cosine: Real[...],
    sine: Real[...],
    across: Real[...],
    along: Real[...],
    r: Index,
    n: Index,
    least: Real,
) -> None:
    """Take the coordinate that release_vector() has gathered out of a factor L of a covariance L L'.  O(n^2 - r^2).

    Rows are turned as there.  Then neighbouring columns are turned, so that L is a triangle again.
    across, along: cosines and sines of those; carry: all of n elements; lost.
    """
    row = row_of(r)
    for j in range(r + 1):
        carry[j] = l[row + j]
    to = row
    row = row + r + 1
    for i in range(r + 1, n):
        c = cosine[i]
        s = sine[i]
        for j in range(r):
            a = carry[j]
            b = l[row + j]
            l[to + j] = c * b - s * a
            carry[j] = c * a + s * b
        # columns r, r + 1, .., i - 1 as earlier turns have left them
        x = l[row + r]
        for j in range(r, i - 1):
            y = l[row + j + 1]
            b = across[j] * x + along[j] * y
            x = along[j] * x - across[j] * y
            a = carry[j]
            l[to + j] = c * b - s * a
            carry[j] = c * a + s * b
        a = carry[i - 1]
        last = c * x - s * a
        a = c * a + s * x
        x = l[row + i]
        y = c * x
        x = s * x
        # the row has an element too many
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
        carry[i - 1] = p * a + q * x
        carry[i] = q * a - p * x
        to = row
        row = row + i + 1
    for j in range(n):
        l[to + j] = real(0)


@kernel
def release_coordinate_of(
    s: Real[...], carry: Real[...], cosine: Real[...], sine: Real[...], r: Index, n: Index
) -> None:
    """Take the coordinate that release_vector() has gathered out of a covariance S, packed.  O(n^2).

    carry: of n elements; lost.
    """
    symmetric_row(s, r, carry, n)
    own = carry[r]
    row = row_of(r + 1)
    for i in range(r + 1, n):
        c = cosine[i]
        z = sine[i]
        for j in range(i):
            a = carry[j]
            b = s[row + j]
            s[row + j] = c * b - z * a
            carry[j] = c * a + z * b
        # the two coordinates themselves
        both = carry[i]
        single = s[row + i]
        change = c * z
        s[row + i] = c * c * single - real(2) * change * both + z * z * own
        carry[i] = change * (single - own) + (c * c - z * z) * both
        own = z * z * single + real(2) * change * both + c * c * own
        at = row + i
        for j in range(i + 1, n):
            at = at + j
            a = carry[j]
            b = s[at]
            s[at] = c * b - z * a
            carry[j] = c * a + z * b
        row = row + i + 1
    symmetric_close(s, r, n)


@kernel
def symmetric_close(p: Real[...], r: Index, n: Index) -> None:
    """Take row and column r out of a symmetric P; later ones move up.  O(n^2 / 2)."""
    to = row_of(r)
    row = to + r + 1
    for i in range(r + 1, n):
        for j in range(r):
            p[to + j] = p[row + j]
        for j in range(r + 1, i + 1):
            p[to + j - 1] = p[row + j]
        to = to + i
        row = row + i + 1
    for j in range(n):
        p[to + j] = real(0)


@kernel
def narrow_factor(
    l: Real[...],
    a: Real[...],
    keep: Real[...],
    share: Real[...],
    scatter: Real,
    own: Real,
    growth: Real,
    n: Index,
) -> None:
    """Replace L by growth times a factor of L L' - p p' / (scatter + own + a'a), where p = L a.  O(n^2).

    What is observed has a covariance p with the rows of L, a variance a'a + own, and noise of variance ``scatter``.  own: of
    a coordinate beyond L, of variance 1.  keep, share: of n elements; -share sqrt(own), and then
    sqrt(scatter / (scatter + own)), is the row that this coordinate has afterwards, if growth is 1.

    Carlson's form: column j is multiplied by keep_j, at most 1, and loses share_j times what later columns have of p.
    N. A. Carlson, Fast triangular formulation of the square root filter, 1973.
    """
    total = scatter + own
    root = sqrt(total)
    inverse = real(1) / root
    for t in range(n):
        j = n - 1 - t
        z = a[j]
        total = total + z * z
        grown = sqrt(total)
        narrower = real(1) / grown
        keep[j] = growth * (root * narrower)
        share[j] = growth * (z * inverse * narrower)
        root = grown
        inverse = narrower
    row = 0
    for i in range(0, n, 2):
        after = row + i + 1
        x = l[row + i]
        l[row + i] = keep[i] * x
        p = a[i] * x
        if i + 1 < n:
            # two rows in a turn, so that a, keep and share are read half as often
            y = l[after + i + 1]
            l[after + i + 1] = keep[i + 1] * y
            q = a[i + 1] * y
            y = l[after + i]
            l[after + i] = keep[i] * y - share[i] * q
            q += a[i] * y
            for t in range(i):
                j = i - 1 - t
                x = l[row + j]
                y = l[after + j]
                l[row + j] = keep[j] * x - share[j] * p
                l[after + j] = keep[j] * y - share[j] * q
                p += a[j] * x
                q += a[j] * y
        else:
            for t in range(i):
                j = i - 1 - t
                x = l[row + j]
                l[row + j] = keep[j] * x - share[j] * p
                p += a[j] * x
        row = after + i + 2


# -------------------------------------------------------------------------------------------------- upper triangles


@kernel
def upper_row_of(i: Index, width: Index) -> Index:
    """The place where row i starts: width + (width - 1) + ...  O(1)."""
    return i * width - floor_shift(i * (i - 1), 1)


@kernel
def solve_upper(r: Real[...], z: Real[...], n: Index, width: Index) -> None:
    """Replace z by R^-1 z.  O(n^2 / 2)."""
    row = upper_row_of(n, width)
    for t in range(n):
        i = n - 1 - t
        row = row - (width - i)
        total = z[i]
        for j in range(i + 1, n):
            total = total - r[row + j - i] * z[j]
        z[i] = total * (real(1) / r[row])


@kernel
def solve_lower(r: Real[...], z: Real[...], n: Index, width: Index) -> None:
    """Replace z by R'^-1 z.  O(n^2 / 2)."""
    row = 0
    for i in range(n):
        z[i] = z[i] * (real(1) / r[row])
        for j in range(i + 1, n):
            z[j] = z[j] - r[row + j - i] * z[i]
        row = row + width - i


@kernel
def take_up(r: Real[...], z: Real[...], least: Real, first: Index, n: Index, width: Index) -> None:
    """Add z z' to R'R by Givens rotations; afterwards z is zero.  Before ``first``, z must be zero.  O(n^2)."""
    row = upper_row_of(first, width)
    for j in range(first, n):
        old = r[row]
        length = sqrt(old * old + z[j] * z[j])
        if length < least:
            length = least
        inverse = real(1) / length
        cosine = old * inverse
        sine = z[j] * inverse
        r[row] = length
        for i in range(j + 1, n):
            upper = r[row + i - j]
            r[row + i - j] = cosine * upper + sine * z[i]
            z[i] = cosine * z[i] - sine * upper
        row = row + width - j


@kernel
def whiten(r: Real[...], z: Real[...], first: Index, n: Index, width: Index, most: Real) -> None:
    """Replace z by R'^-1 z from element ``first`` on, before which z is zero.  No result exceeds ``most``.  O(n^2 / 2)."""
    row = upper_row_of(first, width)
    for i in range(first, n):
        value = bounded(z[i] / r[row], most)
        z[i] = value
        for j in range(i + 1, n):
            z[j] = z[j] - r[row + j - i] * value
        row = row + width - i


@kernel
def blend(r: Real[...], z: Real[...], norms: Real[...], keep: Real, floor: Real, n: Index) -> None:
    """Replace R'R by keep^2 R'R + z z' by Givens rotations; z is lost.  O(n^2).

    An element of the diagonal stays at least ``floor`` times the length of its column: then R has an inverse.
    norms: what the columns above have of these lengths; lost.
    """
    for j in range(n):
        norms[j] = real(0)
    row = 0
    for j in range(n):
        old = keep * r[row]
        length = sqrt(old * old + z[j] * z[j])
        cosine = real(1)
        sine = real(0)
        if length > real(0):
            inverse = real(1) / length
            cosine = old * inverse
            sine = z[j] * inverse
        least = floor * sqrt(norms[j] + length * length)
        r[row] = length if length > least else least
        kept = cosine * keep
        turned = sine * keep
        for i in range(j + 1, n):
            upper = r[row + i - j]
            changed = kept * upper + sine * z[i]
            r[row + i - j] = changed
            z[i] = cosine * z[i] - turned * upper
            norms[i] += changed * changed
        row = row + n - j
