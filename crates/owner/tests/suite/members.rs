//! Lists of members: what an owner may make of one, and that nothing else is believed.

use ciphervec_owner::members::{Change, MAX_CHANGES, MAX_MEMBERS, MemberList, Role};
use ciphervec_owner::protect::state::{StateRecord, StateSigner};
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision};
use proptest::prelude::*;

const ORIGIN: [u8; 16] = [9; 16];
/// Where the first change begins, and the length of one that founds a list of somebody with a name of five letters.
const FIRST: usize = 8 + 4 + 16 + 4;
const FOUNDING: usize = 1 + 8 + (1 + 2 + 5 + 32 + 32) + 16 + 16 + 64;

fn person(name: &str) -> Identity {
    Identity::generate(name).unwrap()
}

fn keys(byte: u8) -> Keys {
    Keys::from_master([byte; 32])
}

fn names(list: &MemberList) -> Vec<(&str, Role)> {
    list.members().iter().map(|one| (one.name.as_str(), one.role)).collect()
}

/// Founded by alice; bob is a member, carl a reader.
fn three() -> ([Identity; 3], MemberList) {
    let people = ["alice", "bobby", "carla"].map(person);
    let [alice, bob, carl] = &people;
    let list = MemberList::found(alice, ORIGIN, &keys(1), 100).unwrap();
    let list = list.admit(alice, &bob.member_card(), Role::Member, &keys(1), 101).unwrap();
    let list = list.admit(alice, &carl.member_card(), Role::Reader, &keys(1), 102).unwrap();
    (people, list)
}

#[test]
fn each_member_opens_the_key_and_a_removed_one_the_next_one_not() {
    let ([alice, bob, carl], list) = three();
    let list = MemberList::from_bytes(&list.to_bytes()).unwrap();
    for person in [&alice, &bob, &carl] {
        assert!(list.open(person).unwrap().same(&keys(1)));
    }
    assert!(list.open(&person("alice")).unwrap_err().to_string().contains("alice, bobby, carla"));
    let later = list.remove(&alice, &bob.member_fingerprint(), &keys(2), 103).unwrap();
    let later = MemberList::from_bytes(&later.to_bytes()).unwrap();
    assert_eq!(names(&later), [("alice", Role::Owner), ("carla", Role::Reader)]);
    assert!(later.open(&bob).is_err());
    assert!(later.open(&carl).unwrap().same(&keys(2)));
    assert_eq!(later.key_id(), keys(2).key_id());
    // One goes on from the other, and says so up to where they part.
    assert_eq!(later.head(3), list.head(3));
    assert!(list.head(4).is_none() && later.head(4).is_some() && later.head(0).is_none());
    let other = list.rekey(&alice, &keys(3), 103).unwrap();
    assert_ne!(other.head(4), later.head(4));
    let said: Vec<_> = later.changes().iter().map(|one| (one.time, one.author)).collect();
    assert_eq!(said, (100..104).map(|time| (time, alice.member_fingerprint())).collect::<Vec<_>>());
}

#[test]
fn only_owners_change_a_list_and_one_of_them_always_stays() {
    let ([alice, bob, carl], list) = three();
    let (dave, me) = (person("david"), alice.member_fingerprint());
    for (what, refused) in [
        ("a member", list.admit(&bob, &dave.member_card(), Role::Owner, &keys(1), 1)),
        ("a reader", list.admit(&carl, &dave.member_card(), Role::Owner, &keys(1), 1)),
        ("a stranger", list.admit(&dave, &dave.member_card(), Role::Owner, &keys(1), 1)),
        (
            "a member who gives themselves a role",
            list.appoint(&bob, &bob.member_fingerprint(), Role::Owner, 1),
        ),
        ("a member who removes", list.remove(&bob, &me, &keys(2), 1)),
        ("a member who rekeys", list.rekey(&bob, &keys(2), 1)),
        ("the last owner, removed", list.remove(&alice, &me, &keys(2), 1)),
        ("the last owner, demoted", list.appoint(&alice, &me, Role::Member, 1)),
        ("nobody of that name", list.remove(&alice, &dave.member_fingerprint(), &keys(2), 1)),
        ("a key from before", list.rekey(&alice, &keys(1), 1)),
        (
            "another's name",
            list.admit(&alice, &person("carla").member_card(), Role::Reader, &keys(1), 1),
        ),
        ("other keys", list.admit(&alice, &dave.member_card(), Role::Reader, &keys(2), 1)),
    ] {
        assert!(refused.is_err(), "{what}");
    }
    // With a second owner the first may go.
    let list = list.appoint(&alice, &bob.member_fingerprint(), Role::Owner, 1).unwrap();
    let list = list.remove(&alice, &me, &keys(2), 2).unwrap();
    assert_eq!(names(&list), [("bobby", Role::Owner), ("carla", Role::Reader)]);
    assert!(list.rekey(&alice, &keys(3), 3).is_err());
    assert!(matches!(list.changes().last().unwrap().change, Change::Remove(who, _) if who == me));
}

#[test]
fn changes_of_another_list_or_in_another_order_are_not_believed() {
    let ([alice, bob, _], list) = three();
    let bytes = list.to_bytes();
    // Of another collection.
    let mut other = bytes.clone();
    other[12..28].copy_from_slice(&[8; 16]);
    let says = MemberList::from_bytes(&other).unwrap_err().to_string();
    assert!(says.contains("alice did not sign for this place"), "{says}");
    // The second and the third change exchanged, and one of them left out.
    let change = FOUNDING - 16;
    let [first, second] =
        [0, 1].map(|at| FIRST + FOUNDING + at * change..FIRST + FOUNDING + (at + 1) * change);
    let swapped = [
        &bytes[..first.start],
        &bytes[second.clone()],
        &bytes[first.clone()],
        &bytes[second.end..],
    ];
    assert!(
        MemberList::from_bytes(&swapped.concat()).unwrap_err().to_string().contains("did not sign")
    );
    let mut dropped = [&bytes[..first.start], &bytes[second.start..]].concat();
    dropped[28] = 2;
    assert!(MemberList::from_bytes(&dropped).unwrap_err().to_string().contains("did not sign"));
    // A branch that bob signs in the owner's place: the owner's signature of it is missing.
    let owners = list.appoint(&alice, &bob.member_fingerprint(), Role::Owner, 1).unwrap();
    let by_bob = owners.rekey(&bob, &keys(2), 1).unwrap().to_bytes();
    assert!(MemberList::from_bytes(&by_bob).is_ok());
    // Both changes behind the first three, without the one that made bob an owner.
    let from = FIRST + FOUNDING + 2 * change;
    let mut without = [&by_bob[..from], &by_bob[from + change..]].concat();
    without[28] = 4;
    assert!(MemberList::from_bytes(&without).unwrap_err().to_string().contains("an owner signed"));
}

#[test]
fn no_bit_of_a_list_can_be_changed_and_no_byte_cut_or_added() {
    let (_, list) = three();
    let bytes = list.to_bytes();
    let sealed = bytes.len() - 3 * (1216 + 1120 + 48);
    for at in (0..sealed * 8).step_by(3) {
        let mut changed = bytes.clone();
        changed[at / 8] ^= 1 << (at % 8);
        assert!(MemberList::from_bytes(&changed).is_err(), "bit {at}");
    }
    for cut in (0..bytes.len()).step_by(13) {
        assert!(MemberList::from_bytes(&bytes[..cut]).is_err(), "{cut} bytes");
    }
    assert!(MemberList::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    // A public key that is not on the card; of a sealed key the member alone can tell.
    let mut changed = bytes.clone();
    changed[sealed] ^= 1;
    assert!(
        MemberList::from_bytes(&changed).unwrap_err().to_string().contains("on the card of alice")
    );
}

#[test]
fn a_list_is_full_at_some_point_and_removals_still_go() {
    let ([alice, ..], mut list) = three();
    for at in 3..MAX_MEMBERS {
        let card = person(&format!("p{at}")).member_card();
        list = list.admit(&alice, &card, Role::Reader, &keys(1), 1).unwrap();
    }
    let one_more = list.admit(&alice, &person("zoe").member_card(), Role::Reader, &keys(1), 1);
    assert!(one_more.unwrap_err().to_string().contains("at most 128 members"));
    const { assert!(MAX_CHANGES > 4 * MAX_MEMBERS) };
    let who = list.members()[5].fingerprint();
    assert_eq!(list.remove(&alice, &who, &keys(2), 1).unwrap().members().len(), MAX_MEMBERS - 1);
}

/// A state of a collection with these members, sealed and signed.
fn state(
    list: &MemberList,
    claimed: &Identity,
    changes: u32,
    signs: &Identity,
) -> (StateRecord, Vec<u8>) {
    let spec =
        IndexSpec::new("docs", 8, Metric::Cosine, Mode::Sealed, Precision::Standard).unwrap();
    let owner = Owner::new(&keys(1), spec).unwrap();
    let record = StateRecord {
        key: owner.key_id(),
        origin: *list.origin(),
        lineage: [2; 16],
        begun: 3,
        sequence: 4,
        epoch: 0,
        segments: 0,
        segments_digest: [0; 32],
        description: [0; 32],
        evaluation: [0; 32],
        key_pair: [0; 32],
        ancestors: Vec::new(),
        aside: Vec::new(),
        routing: [0; 32],
        consumed: [0; 32],
        quarantine: Vec::new(),
        signed: Some(StateSigner { author: claimed.member_fingerprint(), changes }),
    };
    let mut sealed = owner.seal_state(&record).unwrap();
    sealed.extend(signs.sign_state(&sealed));
    let record = owner.open_state(&sealed).unwrap();
    (record, sealed)
}

#[test]
fn a_state_is_its_authors_if_the_list_before_it_let_them_commit() {
    let ([alice, bob, carl], list) = three();
    let author = |claimed, changes, signs| {
        let (record, sealed) = state(&list, claimed, changes, signs);
        list.author(&record, &sealed).map(|one| one.name)
    };
    assert_eq!(author(&bob, 3, &bob).unwrap(), "bobby");
    // The state that added carla was alice's alone.
    assert_eq!(author(&alice, 2, &alice).unwrap(), "alice");
    assert!(author(&bob, 2, &bob).is_err());
    assert!(author(&carl, 3, &carl).unwrap_err().contains("carla, who was a reader"));
    assert!(author(&bob, 3, &alice).unwrap_err().contains("bobby did not sign"));
    assert!(author(&alice, 1, &alice).unwrap_err().contains("beside a list of 3"));
    assert!(author(&alice, 4, &alice).unwrap_err().contains("beside a list of 3"));
    assert!(author(&person("eve"), 3, &person("eve")).unwrap_err().contains("was not a member"));
    let (record, mut sealed) = state(&list, &bob, 3, &bob);
    let last = sealed.len() - 1;
    sealed[last] ^= 1;
    assert!(list.author(&record, &sealed).is_err());
    let unsigned = StateRecord { signed: None, ..record };
    assert!(list.author(&unsigned, &sealed).unwrap_err().contains("nobody signed"));
    // Who founds a list signs the state that begins it.
    let founded = MemberList::found(&alice, ORIGIN, &keys(1), 1).unwrap();
    let (record, sealed) = state(&founded, &alice, 0, &alice);
    assert_eq!(founded.author(&record, &sealed).unwrap().name, "alice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever owners do, every member opens the present key, nobody else does, and the bytes are read as they were written.
    #[test]
    fn whatever_owners_do_members_and_nobody_else_open_the_present_key(
        steps in proptest::collection::vec((0usize..6, 0usize..6, 0u8..4), 1..14)
    ) {
        let people: Vec<_> = (0..6).map(|n| person(&format!("person{n}"))).collect();
        let mut list = MemberList::found(&people[0], ORIGIN, &keys(1), 0).unwrap();
        let (mut key, mut before) = (1, Vec::new());
        for (by, who, what) in steps {
            let (by, who) = (&people[by], &people[who]);
            let owner = list.member(&by.member_fingerprint()).is_some_and(|one| one.role == Role::Owner);
            let next = match what {
                0 => list.admit(by, &who.member_card(), Role::Owner, &keys(key), 1),
                1 => list.admit(by, &who.member_card(), Role::Reader, &keys(key), 1),
                2 => list.remove(by, &who.member_fingerprint(), &keys(key + 1), 1),
                _ => list.rekey(by, &keys(key + 1), 1),
            };
            prop_assert!(owner || next.is_err());
            let Ok(next) = next else { continue };
            key += u8::from(what > 1);
            before.push(list.clone());
            list = MemberList::from_bytes(&next.to_bytes()).unwrap();
            prop_assert_eq!(&list, &next);
            prop_assert!(list.members().iter().any(|one| one.role == Role::Owner));
        }
        for person in &people {
            let on = list.member(&person.member_fingerprint()).is_some();
            prop_assert_eq!(list.open(person).is_ok_and(|opened| opened.same(&keys(key))), on);
        }
        for old in before {
            let changes = old.changes().len();
            prop_assert_eq!(list.head(changes), old.head(changes));
        }
    }
}
