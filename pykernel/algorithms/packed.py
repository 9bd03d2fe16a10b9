"""Triangles and symmetric matrices in packed storage.

Lower triangles and symmetric matrices are stored row by row, up to the diagonal.  Upper triangles are stored row by
row, from the diagonal on.  The first row of an upper triangle takes ``width`` places, even if fewer of them are in use.
"""

from pykernel.algorithms.elementary import bounded
from pykernel.dialect import Bool, Index, Real, floor_shift, kernel, real, sqrt

MOST = 65535
"""Largest number of rows for which an Index can count the places of a triangle.  If GCC knows this limit, it needs no
loop counters besides its pointers, which saves one instruction in ten in the innermost loops."""


@kernel
def row_of(i: Index) -> Index:
    """The place where row i starts.  O(1)."""
    return floor_shift(i * (i + 1), 1)


@kernel
def odd(n: Index) -> Index:
    """1 if n is odd, else 0.  Rows are processed in pairs; if their number is odd, the first row, which is the shortest, is
    processed alone."""
    return n - 2 * floor_shift(n, 1)


@kernel
def few(n: Index) -> Index:
    """n, limited to MOST: this tells the compiler that n is not larger."""
    return n if n < MOST else MOST


@kernel
def substitute_forward(l: Real[...], z: Real[...], n: Index, limit: Real) -> None:
    """Replace z by L^-1 z.  The array l contains L, with reciprocals in place of the diagonal elements.  Each result
    is clipped to +- limit.  O(n^2 / 2).

    Rows are processed in pairs, so that z is read half as often.
    """
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        z[0] = bounded(z[0] * l[0], limit)
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        total = z[i]
        other = z[i + 1]
        for j in range(i):
            both = z[j]
            total = total - l[row + j] * both
            other = other - l[after + j] * both
        first = bounded(total * l[row + i], limit)
        z[i] = first
        z[i + 1] = bounded((other - l[after + i] * first) * l[after + i + 1], limit)
        row = after + i + 2


@kernel
def substitute_backward(l: Real[...], z: Real[...], out: Real[...], n: Index, limit: Real) -> None:
    """Write L'^-1 z to out, which may be the same array as z.  The array l contains L, with reciprocals in place of the
    diagonal elements.  Each result is clipped to +- limit.  O(n^2 / 2).

    Rows are processed in pairs, so that out is read and written half as often.
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
    """Factorise g + shift I = L L'.  Write L to the array l, with reciprocals in place of the diagonal elements; l may
    be the same array as g.  O(n^3 / 6).

    If a pivot is at most least + part g_ii, ``instead`` takes the place of the reciprocal; if ``instead`` is 0, the
    column is zero.  Off-diagonal elements are clipped to +- limit, whatever g is.
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

    Rows are processed in pairs, so that z and out are read half as often.
    """
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        out[0] = p[0] * z[0]
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        a = z[i]
        b = z[i + 1]
        first = p[row + i] * a + p[after + i] * b
        second = p[after + i] * a + p[after + i + 1] * b
        for j in range(i):
            first += p[row + j] * z[j]
            second += p[after + j] * z[j]
            out[j] += p[row + j] * a + p[after + j] * b
        out[i] = first
        out[i + 1] = second
        row = after + i + 2


@kernel
def symmetric_downdate(p: Real[...], g: Real[...], keep: Real, share: Real, more: Real, n: Index) -> None:
    """Replace a symmetric P by keep P - share g g' + more I, for the first n rows and columns.  O(n^2 / 2).

    Rows are processed in pairs, so that g is read half as often.
    """
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        p[0] = keep * p[0] - share * g[0] * g[0] + more
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        step = share * g[i]
        other = share * g[i + 1]
        for j in range(i + 1):
            both = g[j]
            p[row + j] = keep * p[row + j] - step * both
            p[after + j] = keep * p[after + j] - other * both
        p[row + i] += more
        p[after + i + 1] = keep * p[after + i + 1] - other * g[i + 1] + more
        row = after + i + 2


@kernel
def symmetric_row(p: Real[...], i: Index, out: Real[...], n: Index) -> None:
    """Write the first n elements of row i of a symmetric P to out.  O(n)."""
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


@kernel
def symmetric_close(p: Real[...], r: Index, n: Index) -> None:
    """Remove row and column r from a symmetric P; later rows and columns move up.  O(n^2 / 2)."""
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


# ------------------------------------------------------------------------------------------------- lower triangles L


@kernel
def lower_times(l: Real[...], z: Real[...], out: Real[...], n: Index) -> None:
    """Write L z to out, which must not be the same array as z.  O(n^2 / 2).

    Rows are processed in pairs, so that z is read half as often.
    """
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        out[0] = l[0] * z[0]
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        first = real(0)
        second = real(0)
        for j in range(i + 1):
            first += l[row + j] * z[j]
            second += l[after + j] * z[j]
        out[i] = first
        out[i + 1] = second + l[after + i + 1] * z[i + 1]
        row = after + i + 2


@kernel
def lower_transposed_times(l: Real[...], z: Real[...], out: Real[...], first: Index, n: Index) -> None:
    """Write L'z to out, which may be the same array as z.  In both arrays, elements with an index below ``first``
    must be zero.  O(n^2).

    Rows are processed in pairs, so that out is read and written half as often.
    """
    start = first - odd(n - first)
    if start < 0:
        out[0] = l[0] * z[0]
        start = 1
    # this condition is never true; because of this test, GCC knows the limits and needs no loop counters
    if n > MOST or start > MOST:
        return
    row = row_of(start)
    for i in range(start, n, 2):
        after = row + i + 1
        a = z[i]
        b = z[i + 1]
        for j in range(i):
            out[j] += l[row + j] * a + l[after + j] * b
        out[i] = l[row + i] * a + l[after + i] * b
        out[i + 1] = l[after + i + 1] * b
        row = after + i + 2


@kernel
def lower_transposed_twice(
    l: Real[...], y: Real[...], z: Real[...], out: Real[...], other: Real[...], n: Index
) -> None:
    """Write L'y to out, which may be the same array as y.  Write L'z to ``other``, which may be the same array as z.
    L is read only once.  O(n^2)."""
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        out[0] = l[0] * y[0]
        other[0] = l[0] * z[0]
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        a = y[i]
        b = y[i + 1]
        c = z[i]
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
        row = after + i + 2


@kernel
def lower_column_norms(l: Real[...], out: Real[...], n: Index) -> None:
    """Write the sum of squares of each column of L to out.  O(n^2 / 2)."""
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        out[0] = l[0] * l[0]
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        after = row + i + 1
        for j in range(i):
            out[j] += l[row + j] * l[row + j] + l[after + j] * l[after + j]
        out[i] = l[row + i] * l[row + i] + l[after + i] * l[after + i]
        out[i + 1] = l[after + i + 1] * l[after + i + 1]
        row = after + i + 2


@kernel
def lower_column(l: Real[...], r: Index, out: Real[...], n: Index) -> None:
    """Write column r of L'L to out.  O(n^2 - r^2)."""
    for i in range(r):
        out[i] = real(0)
    at = row_of(r)
    at = at + r
    for i in range(r, n):
        out[i] = l[at]
        at = at + i + 1
    lower_transposed_times(l, out, out, r, n)


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

    p contains the covariances of the observation with the coordinates, to which the rows of L belong.  The observation has the
    variance a'a + own, and noise of variance ``scatter``.
    own: the part of the variance that comes from an additional coordinate, which is not in L and has variance 1.
    keep, share: results with n elements each.  If growth is 1, the row of the additional coordinate in the new factor
    is -share sqrt(own), followed by sqrt(scatter / (scatter + own)).

    Carlson's form: column j is multiplied by keep_j, which is at most growth; then share_j times the later columns' part of p
    is subtracted.
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
    rows = few(n)
    alone = 0
    if odd(n) > 0:
        l[0] = keep[0] * l[0]
        alone = 1
    row = alone
    for i in range(alone, rows, 2):
        # rows are processed in pairs, so that a, keep and share are read half as often
        after = row + i + 1
        x = l[row + i]
        l[row + i] = keep[i] * x
        p = a[i] * x
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
        row = after + i + 2


@kernel
def rows_within(l: Real[...], n: Index, most: Real) -> Bool:
    """Whether every row of L has a squared length of at most ``most``.  Rotations preserve the lengths of rows, so no
    rotation takes an element out of its range.  O(n^2 / 2)."""
    row = 0
    for i in range(n):
        square = real(0)
        for j in range(i + 1):
            square += l[row + j] * l[row + j]
        if not (square <= most):
            return False
        row = row + i + 1
    return True


# -------------------------------------------------------------------------------------------------- upper triangles


@kernel
def upper_row_of(i: Index, width: Index) -> Index:
    """The place where row i starts: width + (width - 1) + ...  O(1)."""
    return i * width - floor_shift(i * (i - 1), 1)


@kernel
def columns_within(r: Real[...], n: Index, most: Real) -> Bool:
    """Whether each column of R, whose first row has n places, has a squared length of at most ``most``.  O(n^2 / 2)."""
    for j in range(n):
        square = real(0)
        at = j
        for i in range(j + 1):
            square += r[at] * r[at]
            at = at + n - i - 1
        if not (square <= most):
            return False
    return True


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
    """Add z z' to R'R by Givens rotations; z is overwritten.  Elements of z with an index below ``first`` count as
    zero.  O(n^2)."""
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
def whiten(r: Real[...], z: Real[...], first: Index, n: Index, most: Real) -> None:
    """Replace z by R'^-1 z, with each element clipped to +- most.  Elements of z with an index below
    ``first`` must be zero.  O(n^2 / 2)."""
    row = upper_row_of(first, n)
    for i in range(first, n):
        value = bounded(z[i] / r[row], most)
        z[i] = value
        for j in range(i + 1, n):
            z[j] = z[j] - r[row + j - i] * value
        row = row + n - i


@kernel
def blend(r: Real[...], z: Real[...], norms: Real[...], keep: Real, floor: Real, n: Index) -> None:
    """Replace R'R by keep^2 R'R + z z' by Givens rotations; z is overwritten.  O(n^2).

    Each diagonal element stays at least ``floor`` times the length of its column, so that R has an inverse.
    norms: working memory for the squared length of each column's part above the diagonal.
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
