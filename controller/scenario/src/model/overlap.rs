//! Tests whether a filter can match a packet of which some fields are known, such as a packet from one host to another.
//!
//! The filter is brought into disjunctive normal form: alternatives, each with the permitted values of every field. The answer
//! "no" is proven. The answer "yes" may be wrong if the filter has too many alternatives (`MAX_CONJUNCTIONS`) or negates texts.
//! [`parser_gen::Classes`] finds out whether one packet can match two filters.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use parser_gen::Library;
use parser_gen::filter::{Expr, Filter, Node};
use values::Values;

use crate::model::protocols::Protocols;
use crate::model::topology::Topology;

/// Name of the field with a packet's ingress port at a switch.
pub(crate) const PORT: &str = "switch.port";

/// Maximum number of conjunctions (alternatives) of a filter. A filter with more counts as one that every packet may match.
const MAX_CONJUNCTIONS: usize = 4096;

/// Whether any packet may match the filter.
#[must_use]
pub fn possible(protocols: &Protocols, filter: &Filter) -> bool {
    let conjunctions = normal_form(protocols, &filter.root().expr, true);
    conjunctions.is_none_or(|conjunctions| !conjunctions.is_empty())
}

/// Whether a packet with these values of these fields may match the filter.
#[must_use]
pub fn allows(protocols: &Protocols, filter: &Filter, fields: &[(&str, u128)]) -> bool {
    Allowed::new(protocols, filter).allows(fields, &[])
}

/// A filter prepared for questions on which packets may match it.
pub struct Allowed<'p> {
    library: &'p Library,
    conjunctions: Option<Vec<Conjunction>>,
}

impl<'p> Allowed<'p> {
    /// Prepares a filter: brings it into disjunctive normal form.
    #[must_use]
    pub fn new(protocols: &'p Protocols, filter: &Filter) -> Allowed<'p> {
        Allowed {
            library: protocols,
            conjunctions: normal_form(protocols, &filter.root().expr, true),
        }
    }

    /// Whether a packet with these values of these fields, and without the protocols in `absent`, may match the filter.
    #[must_use]
    pub fn allows(&self, fields: &[(&str, u128)], absent: &[&str]) -> bool {
        let Some(conjunctions) = &self.conjunctions else {
            return true;
        };
        conjunctions.iter().any(|conjunction| {
            // One field's value rules out most conjunctions.
            let excluded = |(field, value): &(&str, u128)| {
                let constraint = conjunction.fields.get(*field);
                constraint.is_some_and(|constraint| !constraint.values.may_be(*value))
            };
            if fields.iter().any(excluded) {
                return false;
            }
            let mut conjunction = conjunction.clone();
            let absent = absent.iter().map(|protocol| (*protocol).to_owned());
            conjunction.absent.extend(absent);
            let fixed = fields
                .iter()
                .try_fold(conjunction, |conjunction, (field, value)| {
                    let test = Constraint {
                        present: true,
                        values: Values::Numbers(vec![*value..=*value]),
                    };
                    conjunction.with_field(self.library, field, test)
                });
            fixed.is_some()
        })
    }
}

impl Allowed<'_> {
    /// Whether a packet that comes to a switch from a neighbor may match the filter, given the switch's ports to the neighbor.
    pub(crate) fn enters(&self, topology: &Topology, switch: &str, neighbor: &str) -> bool {
        let mut ports = topology.ports(switch).filter(|port| port.peer == neighbor);
        ports.any(|port| self.allows(&[(PORT, u128::from(port.number))], &[]))
    }

    /// The value of a field, if it is the same in all matching packets with these values of other fields; otherwise `None`.
    #[must_use]
    pub fn only(&self, fields: &[(&str, u128)], field: &str) -> Option<u128> {
        let of = |conjunction: &Conjunction| {
            let constraint = conjunction.fields.get(field)?;
            constraint.values.only().filter(|_| constraint.present)
        };
        let left = self.with(fields)?;
        let first = of(left.first()?)?;
        left.iter()
            .all(|other| of(other) == Some(first))
            .then_some(first)
    }

    /// Whether every packet that matches the filter and has these values of these fields also has a protocol.
    #[must_use]
    pub fn all_have(&self, fields: &[(&str, u128)], protocol: &str) -> bool {
        let left = self.with(fields);
        left.is_some_and(|left| left.iter().all(|one| one.present.contains(protocol)))
    }

    /// The filter's conjunctions that packets with these values of these fields may satisfy; `None` if the filter has too many.
    fn with(&self, fields: &[(&str, u128)]) -> Option<Vec<Conjunction>> {
        let fixed = |conjunction: &Conjunction| {
            let mut fields = fields.iter();
            fields.try_fold(conjunction.clone(), |conjunction, (field, value)| {
                let test = Constraint {
                    present: true,
                    values: Values::Numbers(vec![*value..=*value]),
                };
                conjunction.with_field(self.library, field, test)
            })
        };
        let conjunctions = self.conjunctions.as_ref()?;
        Some(conjunctions.iter().filter_map(fixed).collect())
    }
}

/// A conjunction: constraints on fields and protocols that a packet must satisfy together.
#[derive(Debug, Clone, Default)]
struct Conjunction {
    fields: BTreeMap<String, Constraint>,
    present: BTreeSet<String>,
    absent: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Constraint {
    /// Whether only packets with the field satisfy the test. (Packets without the field also satisfy a negated test.)
    present: bool,
    values: Values,
}

/// The satisfiable conjunctions of an expression, or of its negation if `positive` is false; `None` if there are too many.
fn normal_form(library: &Library, expr: &Expr, positive: bool) -> Option<Vec<Conjunction>> {
    let any = |parts: &[Node]| -> Option<Vec<Conjunction>> {
        let mut all = Vec::new();
        for part in parts {
            all.extend(normal_form(library, &part.expr, positive)?);
        }
        (all.len() <= MAX_CONJUNCTIONS).then_some(all)
    };
    let every = |parts: &[Node]| -> Option<Vec<Conjunction>> {
        let mut all = vec![Conjunction::default()];
        for part in parts {
            all = product(library, all, normal_form(library, &part.expr, positive)?)?;
        }
        Some(all)
    };
    match (expr, positive) {
        (Expr::Or(parts), true) | (Expr::And(parts), false) => any(parts),
        (Expr::And(parts), true) | (Expr::Or(parts), false) => every(parts),
        (Expr::Not(inner), _) => normal_form(library, &inner.expr, !positive),
        (Expr::Present { protocol }, true) => Some(
            Conjunction::default()
                .with_protocol(library, protocol)
                .into_iter()
                .collect(),
        ),
        (Expr::Present { protocol }, false) => {
            let mut conjunction = Conjunction::default();
            conjunction.absent.insert(protocol.clone());
            Some(vec![conjunction])
        }
        (Expr::Test(test), positive) => {
            let constraint = Constraint {
                present: positive,
                values: Values::from_test(test, positive),
            };
            Some(
                Conjunction::default()
                    .with_field(library, &test.field, constraint)
                    .into_iter()
                    .collect(),
            )
        }
    }
}

fn product(
    library: &Library,
    a: Vec<Conjunction>,
    b: Vec<Conjunction>,
) -> Option<Vec<Conjunction>> {
    let mut all = Vec::new();
    for left in &a {
        for right in &b {
            all.extend(left.clone().and(library, right));
            if all.len() > MAX_CONJUNCTIONS {
                return None;
            }
        }
    }
    Some(all)
}

impl Conjunction {
    /// The conjunction of `self` and `other`; `None` if no packet can satisfy both.
    fn and(self, library: &Library, other: &Conjunction) -> Option<Conjunction> {
        let mut both = self;
        for protocol in &other.present {
            both = both.with_protocol(library, protocol)?;
        }
        both.absent.extend(other.absent.iter().cloned());
        for (field, constraint) in &other.fields {
            both = both.with_field(library, field, constraint.clone())?;
        }
        both.consistent(library).then_some(both)
    }

    fn with_protocol(mut self, library: &Library, protocol: &str) -> Option<Conjunction> {
        self.present.insert(protocol.to_owned());
        let implied = library.implied_by(protocol).into_iter();
        self.present.extend(implied.map(str::to_owned));
        self.consistent(library).then_some(self)
    }

    fn with_field(
        self,
        library: &Library,
        field: &str,
        constraint: Constraint,
    ) -> Option<Conjunction> {
        let mut all = if constraint.present {
            self.with_protocol(library, field.split('.').next().unwrap_or(field))?
        } else {
            self
        };
        let merged = match all.fields.remove(field) {
            None => constraint,
            Some(before) => Constraint {
                present: before.present || constraint.present,
                values: before.values.and(constraint.values),
            },
        };
        let possible = !merged.present || !merged.values.is_empty();
        all.fields.insert(field.to_owned(), merged);
        possible.then_some(all)
    }

    fn consistent(&self, library: &Library) -> bool {
        let mut present = self.present.iter();
        let coexist =
            present.all(|a| (self.present.range::<String, _>(..a)).all(|b| library.coexist(a, b)));
        coexist && self.present.is_disjoint(&self.absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> Filter {
        Filter::parse(&Library::builtin(), text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The classes of two filters; `None` if the filters unfold into too many conjunctions.
    fn classes(a: &Filter, b: &Filter) -> Option<parser_gen::Classes> {
        let flows = [("a", a), ("b", b)].map(|(name, filter)| parser_gen::Flow {
            name: name.to_owned(),
            filter: filter.clone(),
        });
        parser_gen::Classes::new(&Library::builtin(), &flows).ok()
    }

    fn overlap(a: &Filter, b: &Filter) -> bool {
        classes(a, b).is_none_or(|classes| classes.meet(0, 1))
    }

    fn implies(a: &Filter, b: &Filter) -> bool {
        classes(a, b).is_some_and(|classes| classes.implies(0, 1))
    }

    #[test]
    fn pairs() {
        for (a, b, expected) in [
            ("tcp.dport == 80", "tcp.dport == 81", false),
            ("tcp.dport == 80", "tcp.sport == 81", true),
            ("tcp", "udp", false),
            ("redis.command == \"GET\"", "udp.dport == 22341", false),
            ("roce.qp == 1", "tcp", false),
            ("roce.qp == 1", "udp.dport == 4791", true),
            ("roce.qp == 1", "agg.job == 1", false),
            ("vlan.id == 1", "!eth", false),
            ("redis.command == \"GET\"", "redis.command == \"get\"", true),
            (
                "redis.command == \"GET\"",
                "redis.command == \"SET\"",
                false,
            ),
            (
                "redis.key startswith \"cart:\"",
                "redis.key == \"cart:1\"",
                true,
            ),
            (
                "redis.key startswith \"cart:\"",
                "redis.key startswith \"user:\"",
                false,
            ),
            (
                "redis.key startswith \"cart:\"",
                "redis.key != \"cart:1\"",
                true,
            ),
            ("redis.key == \"cart:1\"", "redis.key != \"cart:1\"", false),
            (
                "ip.src == 10.0.0.1",
                "ip.src == 10.0.0.0/24 && ip.src != 10.0.0.1",
                false,
            ),
            ("ip.src == 10.0.0.1", "!(ip.src == 10.0.0.1)", false),
            ("tcp.dport == 80", "!(ip.src == 10.0.0.1)", true),
            (
                "tcp.dport in {80, 443}",
                "tcp.dport > 400 && tcp.dport < 500",
                true,
            ),
            ("tcp.dport in {80, 443}", "tcp.dport > 443", false),
            // A protocol implies the EtherType, port or protocol number that selects it.
            ("ip.src == 10.0.0.1", "eth.type == 0x86dd", false),
            ("ip.src == 10.0.0.1", "eth.type in {0x0806, 0x86dd}", false),
            ("ip", "eth.type == 0x8100", true),
            ("tcp", "eth.type == 0x86dd", true),
            ("ipv6", "eth.type <= 0x8000", false),
            ("vxlan.vni == 5", "udp.dport == 4790", false),
            ("icmp", "ip.proto == 17", false),
            ("arp", "eth.type == 0x0800 && switch.port == 1", false),
            (
                "ip.src == 10.0.0.1 || ip.src == 10.0.0.2",
                "ip.src == 10.0.0.3 || ip.src == 10.0.0.2",
                true,
            ),
        ] {
            assert_eq!(overlap(&filter(a), &filter(b)), expected, "{a} | {b}");
            assert_eq!(overlap(&filter(b), &filter(a)), expected, "{b} | {a}");
        }
    }

    #[test]
    fn implication() {
        assert!(implies(
            &filter("tcp.dport == 80 && ip.src == 10.0.0.1"),
            &filter("tcp.dport == 80")
        ));
        assert!(implies(&filter("redis.command == \"GET\""), &filter("tcp")));
        assert!(implies(&filter("vxlan"), &filter("udp.dport == 4789")));
        assert!(!implies(
            &filter("tcp.dport == 80"),
            &filter("tcp.dport == 80 && ip.src == 10.0.0.1")
        ));
    }

    #[test]
    fn impossible_filters() {
        assert!(!possible(
            &Protocols::builtin(),
            &filter("tcp.dport == 80 && udp.sport == 1")
        ));
        assert!(possible(&Protocols::builtin(), &filter("tcp.dport == 80")));
        assert!(allows(
            &Protocols::builtin(),
            &filter("ip.src == 10.0.0.0/24"),
            &[("ip.src", 0x0A00_0007)]
        ));
        assert!(!allows(
            &Protocols::builtin(),
            &filter("ip.src == 10.0.0.0/24"),
            &[("ip.src", 0x0A00_0107)]
        ));
        let either = filter("ip.src == 10.0.0.1 && ip.dst == 10.0.0.3 || ip.src == 10.0.0.2");
        assert!(!allows(
            &Protocols::builtin(),
            &either,
            &[("ip.src", 0x0A00_0001), ("ip.dst", 0x0A00_0002)]
        ));
    }

    mod soundness {
        use super::*;
        use parser_gen::FieldValues;
        use proptest::prelude::*;

        fn test() -> impl Strategy<Value = String> {
            let number = (
                prop::sample::select(vec!["tcp.dport", "tcp.sport", "udp.dport"]),
                prop::sample::select(vec!["==", "!=", "<=", ">"]),
                prop::sample::select(vec![1, 2, 3, REDIS]),
            )
                .prop_map(|(field, operator, value)| format!("{field} {operator} {value}"));
            let text = (
                prop::sample::select(vec!["redis.key", "redis.command"]),
                prop::sample::select(vec!["==", "!=", "startswith"]),
                "[aA]{1,2}",
            )
                .prop_map(|(field, operator, text)| format!("{field} {operator} \"{text}\""));
            let present = prop::sample::select(vec!["tcp", "udp", "redis"]).prop_map(str::to_owned);
            prop_oneof![4 => number, 3 => text, 1 => present]
        }

        fn expression() -> impl Strategy<Value = String> {
            test().prop_recursive(3, 12, 3, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 2..4)
                        .prop_map(|parts| format!("({})", parts.join(" && "))),
                    prop::collection::vec(inner.clone(), 2..4)
                        .prop_map(|parts| format!("({})", parts.join(" || "))),
                    inner.prop_map(|part| format!("!({part})")),
                ]
            })
        }

        /// The port by which the parser recognizes Redis.
        const REDIS: u16 = 6379;

        /// A packet as the parser can see it: TCP or UDP; Redis only over TCP to its port.
        fn packet() -> impl Strategy<Value = FieldValues> {
            (0..3_u8, 1..4_u16, 1..4_u16, "[aA]{1,3}", "[aA]{1,3}").prop_map(
                |(kind, sport, dport, command, key)| {
                    let mut values = FieldValues::new();
                    let transport = if kind == 0 { "udp" } else { "tcp" };
                    let dport = if kind == 2 { REDIS } else { dport };
                    values.set_number(&format!("{transport}.sport"), sport.into());
                    values.set_number(&format!("{transport}.dport"), dport.into());
                    if kind == 2 {
                        values.set_text("redis.command", command.as_bytes());
                        values.set_text("redis.key", key.as_bytes());
                    }
                    values
                },
            )
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(test_support::cases(2000)))]
            #[test]
            fn what_matches_both_overlaps(
                a in expression(),
                b in expression(),
                packets in prop::collection::vec(packet(), 40),
            ) {
                let (a, b) = (filter(&a), filter(&b));
                // A filter that needs too many entries is refused with an error, so no scenario contains it.
                let flows = [("a", &a), ("b", &b)].map(|(name, filter)| parser_gen::Flow {
                    name: name.to_owned(),
                    filter: filter.clone(),
                });
                let made = parser_gen::Classes::new(&Library::builtin(), &flows);
                let is_refused =
                    matches!(made, Err(parser_gen::GenerateError::TooManyTerms { .. }));
                prop_assume!(!is_refused);
                let of_a: Vec<_> = packets.iter().filter(|packet| a.matches(packet)).collect();
                if of_a.iter().any(|packet| b.matches(packet)) {
                    prop_assert!(overlap(&a, &b), "{} | {}", a.text(), b.text());
                }
                if of_a.iter().any(|packet| !b.matches(packet)) {
                    prop_assert!(!implies(&a, &b), "{} => {}", a.text(), b.text());
                }
            }
        }
    }
}
