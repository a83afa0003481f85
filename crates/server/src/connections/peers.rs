//! Seats of connections by address: each connection takes one, or meets a limit.

use super::activity::Activity;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who counts as one: an IPv4 address, or the 64 leading bits of an IPv6 one, all addresses behind
/// which belong to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Network(IpAddr);

impl Network {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Network(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
            v4 => Network(v4),
        }
    }
}

#[derive(Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, (Network, Arc<Activity>)>,
    counts: HashMap<Network, usize>,
}

impl Open {
    /// The connection that has rested for the longest, of one peer or of all.
    fn resting(&self, of: Option<Network>) -> Option<u64> {
        let connections = self.connections.iter();
        let connections =
            connections.filter(|(_, (network, _))| of.is_none_or(|of| *network == of));
        let resting =
            connections.filter_map(|(number, (_, activity))| Some((activity.resting()?, *number)));
        resting.min().map(|(_, number)| number)
    }

    /// A connection that can go: of who has the most, or else of anybody.
    fn least_needed(&self) -> Option<u64> {
        let most = self.counts.iter().max_by_key(|(_, count)| **count).map(|(network, _)| *network);
        self.resting(most).or_else(|| self.resting(None))
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (network, activity) = self.connections.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&network);
            }
        }
        Some(activity)
    }
}

/// The connections that are open.
pub(super) struct Peers {
    total: usize,
    per_address: usize,
    open: Mutex<Open>,
}

impl Peers {
    /// Nobody yet.
    pub fn new(total: usize, per_address: usize) -> Self {
        Peers { total, per_address, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a connection from there. Where all are taken one that rests has to go, so that
    /// whoever only holds connections keeps nobody out.
    ///
    /// # Errors
    /// The limit that it meets, as metrics have it: `address` or `connections`.
    pub fn enter(
        peers: &Arc<Self>,
        address: IpAddr,
        activity: &Arc<Activity>,
    ) -> Result<Seat, &'static str> {
        let network = Network::of(address);
        let mut open = peers.open();
        if open.counts.get(&network).is_some_and(|&count| count >= peers.per_address) {
            let oldest = open.resting(Some(network)).ok_or("address")?;
            open.remove(oldest).iter().for_each(|activity| activity.crowd_out());
        }
        if open.connections.len() >= peers.total {
            let oldest = open.least_needed().ok_or("connections")?;
            open.remove(oldest).iter().for_each(|activity| activity.crowd_out());
        }
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, (network, activity.clone()));
        *open.counts.entry(network).or_default() += 1;
        Ok(Seat { peers: peers.clone(), number })
    }
}

/// The place of one open connection.
pub(super) struct Seat {
    peers: Arc<Peers>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.peers.open().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::{Closing, Handling};
    use super::*;
    use std::time::Duration;

    fn activity() -> Arc<Activity> {
        Arc::new(Activity::new(Duration::from_secs(10), Duration::from_secs(30)))
    }

    fn is_out(activity: &Activity) -> bool {
        activity.deadline().is_some_and(|(_, why)| why == Closing::Crowded)
    }

    #[test]
    fn who_holds_the_most_gives_way_and_who_works_stays() {
        let peers = Arc::new(Peers::new(8, 6));
        let enter = |address: &str, activity: &Arc<Activity>| {
            Peers::enter(&peers, address.parse().expect("an address"), activity)
        };
        let hoard: Vec<_> = (0..6).map(|_| activity()).collect();
        let mut seats: Vec<_> =
            hoard.iter().map(|one| enter("192.0.2.1", one).expect("room")).collect();
        let works = activity();
        let (_request, _seat) =
            (Handling::new(works.clone()), enter("192.0.2.2", &works).expect("room"));
        let rests = activity();
        let _other = enter("192.0.2.3", &rests).expect("room");
        // All eight are taken; newcomers push out the hoarder, again and again.
        for (count, address) in ["192.0.2.4", "192.0.2.5", "192.0.2.6"].iter().enumerate() {
            seats.push(enter(address, &activity()).expect("room"));
            assert_eq!(hoard.iter().filter(|one| is_out(one)).count(), count + 1);
        }
        assert!(is_out(&hoard[0]) && !is_out(&works) && !is_out(&rests));
        assert_eq!(peers.open().connections.len(), 8);
        // Of one address only those that rest make room for the next.
        let busy: Vec<_> = (0..9)
            .map(|_| activity())
            .map(|one| (Handling::new(one.clone()), enter("2001:db8::1", &one)))
            .collect();
        let refused = busy.iter().filter(|(_, seat)| matches!(seat, Err("address"))).count();
        assert!(refused >= 1 && !is_out(&works), "{refused}");
        drop((busy, seats, _other));
        assert_eq!(peers.open().connections.len(), 1, "the one that works");
        assert_eq!(peers.open().counts.len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_what_it_maps() {
        let of = |text: &str| Network::of(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
