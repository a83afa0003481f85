//! Centre: one vector that is taken off all rows and queries of an `l2` index before they are sealed. Owner and writer.
//!
//! Distances do not change when rows and queries are moved alike, and their errors do: those grow with the squared distance from
//! zero (`docs/sealed.md`). A segment's sidecar says what was taken off its rows, a query what was taken off itself, and
//! only what was moved alike is compared.

use crate::error::{Error, Result};
use crate::index::metric::Metric;
use crate::index::spec::IndexSpec;
use std::borrow::Cow;

/// Refuses a centre that is none of this index; an empty one is the origin.
pub(super) fn check(spec: &IndexSpec, centre: &[f32]) -> Result<()> {
    let fits = spec.metric() == Metric::L2 && centre.len() == spec.dimension();
    if centre.is_empty() || (fits && centre.iter().all(|x| x.is_finite())) {
        return Ok(());
    }
    Err(Error::Range {
        what: "the centre of an index",
        expected: format!("{} finite numbers under l2, none under others", spec.dimension()),
        actual: format!("{} under {}", centre.len(), spec.metric().as_str()),
    })
}

/// Rows (row-major) less the centre, rounded once.
pub(super) fn less<'a>(
    spec: &IndexSpec,
    rows: &'a [f32],
    centre: &[f32],
) -> Result<Cow<'a, [f32]>> {
    check(spec, centre)?;
    if centre.is_empty() {
        return Ok(Cow::Borrowed(rows));
    }
    let moved = rows.chunks(centre.len()).flat_map(|row| {
        row.iter().zip(centre).map(|(&x, &c)| (f64::from(x) - f64::from(c)) as f32)
    });
    Ok(Cow::Owned(moved.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Precision};

    #[test]
    fn a_centre_is_of_the_index_or_refused() -> Result<()> {
        let spec = |metric| IndexSpec::new("test", 2, metric, Mode::Sealed, Precision::Standard);
        let l2 = spec(Metric::L2)?;
        let rows = [5_000_000.0, 1.0, 5_000_001.0, -2.0];
        assert_eq!(*less(&l2, &rows, &[5_000_000.0, 0.5])?, [0.0, 0.5, 1.0, -2.5]);
        assert!(matches!(less(&l2, &rows, &[])?, Cow::Borrowed(_)));
        for wrong in [&[1.0][..], &[1.0, f32::NAN], &[1.0, f32::INFINITY], &[1.0, 2.0, 3.0]] {
            assert!(less(&l2, &rows, wrong).is_err(), "{wrong:?}");
        }
        assert!(less(&spec(Metric::Cosine)?, &rows, &[1.0, 2.0]).is_err());
        Ok(())
    }
}
