//! The parameter set of a bootstrapping as bytes of a plan.
//!
//! `log2 of the degree, of the slots u8 | levels u8 | scale u8 | products of slots-to-coefficients,
//! bits of their primes u8 | bits of the reduction, at the top of it u8 | double angles u8 |
//! straight u8 | inverse sine u8 | products of coefficients-to-slots, bits of their primes u8 |
//! rotations that a key may cost u8 | special primes, their bits u8 | digits u8 | quantum u8 |
//! range f64`; in full also `bits that the scale of the reduction rises by at a level u8 |
//! iterations, log2 of what residuals are multiplied by u8`, which are 1, 1 and 0 where they are
//! not written.

use crate::error::Result;
use ciphervec_he::ckks::{BootstrapSpec, Ring};
use ciphervec_he::params::Security;
use ciphervec_he::wire::Reader;

/// Whether a set is only written in full.
pub(super) fn in_full(spec: &BootstrapSpec) -> bool {
    (spec.reduction_rise, spec.iterations, spec.residual_bits) != (1, 1, 0)
}

/// Writes what [`read_spec`] reads.
pub(super) fn write_spec(spec: &BootstrapSpec, full: bool, out: &mut Vec<u8>) {
    let sizes = [
        spec.log_degree as usize,
        spec.log_slots as usize,
        spec.levels,
        spec.scale_bits as usize,
        spec.slots_to_coefficients,
        spec.slots_to_coefficients_bits as usize,
        spec.reduction_bits as usize,
        spec.reduction_top_bits as usize,
        spec.doublings as usize,
        usize::from(spec.straight),
        usize::from(spec.inverse_sine),
        spec.coefficients_to_slots,
        spec.coefficients_to_slots_bits as usize,
        spec.key_cost,
        spec.special_primes,
        spec.special_bits as usize,
        spec.digits,
        usize::from(spec.security == Security::Quantum128),
    ];
    out.extend(sizes.map(|size| size as u8));
    out.extend(spec.range.to_le_bytes());
    if full {
        let more = [spec.reduction_rise as usize, spec.iterations, spec.residual_bits as usize];
        out.extend(more.map(|size| size as u8));
    }
}

/// Reads the sizes; what they are is checked when parameters are made of them.
pub(super) fn read_spec(reader: &mut Reader<'_>, full: bool) -> Result<BootstrapSpec> {
    let sizes: [u8; 18] = reader.array()?;
    let range = f64::from_le_bytes(reader.array()?);
    let [rise, iterations, residual]: [u8; 3] = if full { reader.array()? } else { [1, 1, 0] };
    let flag = |place: usize| match sizes[place] {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.error(format!("0 or 1 expected, got {other}"))),
    };
    let [straight, inverse_sine, quantum] = [flag(9)?, flag(10)?, flag(17)?];
    let bits = |place: usize| u32::from(sizes[place]);
    let count = |place: usize| usize::from(sizes[place]);
    Ok(BootstrapSpec {
        ring: Ring::Standard,
        log_degree: bits(0),
        log_slots: bits(1),
        levels: count(2),
        scale_bits: bits(3),
        slots_to_coefficients: count(4),
        slots_to_coefficients_bits: bits(5),
        reduction_bits: bits(6),
        reduction_top_bits: bits(7),
        doublings: bits(8),
        straight,
        inverse_sine,
        coefficients_to_slots: count(11),
        coefficients_to_slots_bits: bits(12),
        key_cost: count(13),
        special_primes: count(14),
        special_bits: bits(15),
        digits: count(16),
        range,
        reduction_rise: u32::from(rise),
        iterations: usize::from(iterations),
        residual_bits: u32::from(residual),
        security: if quantum { Security::Quantum128 } else { Security::Classical128 },
    })
}

/// A bound on the bytes of the matrices that a set refreshes with: each of its products has at most
/// twice as many diagonals as it has slots per group of butterflies.
pub(super) fn diagonals(spec: &BootstrapSpec) -> u64 {
    let bytes = 8u64.checked_shl(spec.log_degree).unwrap_or(u64::MAX);
    let of = |products: usize| {
        let steps = (spec.log_degree as usize).div_ceil(products.max(1)).min(40);
        (products as u64).saturating_mul(2 << steps).saturating_mul(bytes)
    };
    of(spec.slots_to_coefficients).saturating_add(of(spec.coefficients_to_slots))
}
