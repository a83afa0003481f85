//! A model of the network between the key holder and a server: the seconds that an answer takes on its way.

/// A network as far as it matters to how an index is packed: answers that are shorter take longer to compute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Bytes that come in a second.
    pub bytes_per_second: f64,
    /// Seconds there and back.
    pub round_trip: f64,
}

impl Default for Network {
    /// One gigabit a second, half a millisecond there and back.
    fn default() -> Self {
        Network { bytes_per_second: 125e6, round_trip: 0.5e-3 }
    }
}

/// Bytes that a connection sends before it waits for the first acknowledgement: ten segments.
const FIRST_WINDOW: f64 = 14_600.0;

impl Network {
    /// Seconds that so many bytes take: at the bandwidth, once the connection has doubled its window, a round trip each time,
    /// until as many are on their way as fit.
    pub fn seconds(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let fits = self.bytes_per_second * self.round_trip;
        let doublings = (1.0 + bytes.min(fits) / FIRST_WINDOW).log2();
        bytes / self.bytes_per_second + doublings * self.round_trip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_and_narrow_networks_take_longer_and_more_bytes_always_do() {
        let near = Network::default();
        let far = Network { round_trip: 0.1, ..near };
        let narrow = Network { bytes_per_second: 1e6, ..near };
        let mut last = [0.0; 3];
        for bytes in [1, 1000, 100_000, 10_000_000, 1_000_000_000] {
            let taken = [near, far, narrow].map(|network| network.seconds(bytes));
            assert!(taken[1] > taken[0] && taken[2] > taken[0]);
            assert!(taken.iter().zip(last).all(|(now, before)| *now > before));
            last = taken;
        }
        assert!((near.seconds(125_000_000) - 1.0).abs() < 0.01);
    }
}
