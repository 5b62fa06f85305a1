//! Names of extern objects, methods and functions in PSA, v1model and TNA. No other file contains these names.
//!
//! The lowering resolves the names, so targets match on variants and not on text. A name that is not listed here belongs to a
//! user's own architecture: the IR keeps it, and targets give it no meaning.

use std::fmt;

macro_rules! names {
    ($(#[$doc:meta])* $what:ident { $($variant:ident = $name:literal $(| $other:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $what {
            $(#[doc = concat!("`", $name, "`" $(, ", `", $other, "`")*)] $variant,)*
            /// A name that no listed architecture declares: from a user's own architecture.
            Other(String),
        }

        impl $what {
            /// Returns the variant for a name in the program; `Other` if the name is not listed.
            pub fn named(name: &str) -> $what {
                match name {
                    $($name $(| $other)* => $what::$variant,)*
                    other => $what::Other(other.to_owned()),
                }
            }

            /// The name in the program; if architectures use different names, the first listed.
            pub fn name(&self) -> &str {
                match self {
                    $($what::$variant => $name,)*
                    $what::Other(name) => name,
                }
            }
        }

        impl fmt::Display for $what {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

macro_rules! externs {
    ($($variant:ident = $name:literal $(| $other:literal)* { $($method:ident),* },)*) => {
        names! {
            /// The type of an extern object of PSA, v1model or TNA. Types that differ only in their number of results share a
            /// variant.
            ExternKind { $($variant = $name $(| $other)*,)* }
        }

        impl ExternKind {
            /// The methods that any architecture declares for this kind, including the abstract ones that a program implements.
            pub fn methods(&self) -> &'static [Method] {
                match self {
                    $(ExternKind::$variant => const { &[$(Method::$method),*] },)*
                    ExternKind::Other(_) => &[],
                }
            }
        }
    };
}

externs! {
    // Cells addressed by index: `size`, or `n_counters` and `n_meters`.
    Counter = "Counter" | "counter" { Count },
    Meter = "Meter" | "meter" { Execute, ExecuteMeter },
    Register = "Register" | "register" { Read, Write, Clear },
    Lpf = "Lpf" { Execute },
    Wred = "Wred" { Execute },
    // One cell for each entry of the table that names the extern.
    DirectCounter = "DirectCounter" | "direct_counter" { Count },
    DirectMeter = "DirectMeter" | "direct_meter" { Execute, Read },
    DirectRegister = "DirectRegister" { Read, Write, Clear },
    DirectLpf = "DirectLpf" { Execute },
    DirectWred = "DirectWred" { Execute },
    // Operations of a stateful ALU on a register or selector, which is the first argument.
    RegisterAction = "RegisterAction" | "RegisterAction2" | "RegisterAction3" | "RegisterAction4" {
        Execute, ExecuteLog, Enqueue, Dequeue, Push, Pop, Sweep, Address, Predicate, Min8, Max8, Min16, Max16,
        Apply, Overflow, Underflow
    },
    DirectRegisterAction = "DirectRegisterAction" | "DirectRegisterAction2" | "DirectRegisterAction3"
        | "DirectRegisterAction4" { Execute, Predicate, Address, Min8, Max8, Min16, Max16, Apply },
    LearnAction = "LearnAction" | "LearnAction2" | "LearnAction3" | "LearnAction4" {
        Execute, Address, Predicate, Min8, Max8, Min16, Max16, Apply
    },
    MinMaxAction = "MinMaxAction" | "MinMaxAction2" | "MinMaxAction3" | "MinMaxAction4" {
        Execute, Address, Predicate, Min8, Max8, Min16, Max16, Apply
    },
    SelectorAction = "SelectorAction" { Execute, Apply },
    RegisterParam = "RegisterParam" { Read },
    MathUnit = "MathUnit" { Execute },
    // Hashes, checksums, random numbers.
    Hash = "Hash" { Get, GetHash },
    CrcPolynomial = "CRCPolynomial" {},
    Checksum = "Checksum" { Clear, Update, Get, Add, Subtract, Verify, SubtractAllAndDeposit },
    Checksum16 = "Checksum16" { Get },
    InternetChecksum = "InternetChecksum" { Clear, Add, Subtract, Get, GetState, SetState },
    Random = "Random" { Read, Get },
    // Implementations of tables.
    ActionProfile = "ActionProfile" | "action_profile" {},
    ActionSelector = "ActionSelector" | "action_selector" {},
    Atcam = "Atcam" {},
    Alpm = "Alpm" {},
    IdleTimeout = "IdleTimeout" {},
    // Externs of parsers and deparsers.
    ParserCounter = "ParserCounter" { Set, Push, Pop, IsZero, IsNegative, Increment, Decrement },
    ParserPriority = "ParserPriority" { Set },
    Digest = "Digest" { Pack },
    Mirror = "Mirror" { Emit },
    Resubmit = "Resubmit" { Emit },
    Pktgen = "Pktgen" { Emit },
    // PSA blocks that a program never instantiates itself.
    PacketReplicationEngine = "PacketReplicationEngine" {},
    BufferingQueueingEngine = "BufferingQueueingEngine" {},
}

impl ExternKind {
    /// Whether the extern has one cell for each entry of the table that names it.
    pub fn is_direct(&self) -> bool {
        matches!(
            self,
            ExternKind::DirectCounter
                | ExternKind::DirectMeter
                | ExternKind::DirectRegister
                | ExternKind::DirectLpf
                | ExternKind::DirectWred
        )
    }
}

names! {
    /// A method of an extern object; overloads differ in their arguments.
    Method {
        Add = "add",
        Address = "address",
        Apply = "apply",
        Clear = "clear",
        Count = "count",
        Decrement = "decrement",
        Dequeue = "dequeue",
        Emit = "emit",
        Enqueue = "enqueue",
        Execute = "execute",
        ExecuteLog = "execute_log",
        ExecuteMeter = "execute_meter",
        Get = "get",
        GetHash = "get_hash",
        GetState = "get_state",
        Increment = "increment",
        IsNegative = "is_negative",
        IsZero = "is_zero",
        Max16 = "max16",
        Max8 = "max8",
        Min16 = "min16",
        Min8 = "min8",
        Overflow = "overflow",
        Pack = "pack",
        Pop = "pop",
        Predicate = "predicate",
        Push = "push",
        Read = "read",
        Set = "set",
        SetState = "set_state",
        Subtract = "subtract",
        SubtractAllAndDeposit = "subtract_all_and_deposit",
        Sweep = "sweep",
        Underflow = "underflow",
        Update = "update",
        Verify = "verify",
        Write = "write",
    }
}

impl Method {
    /// The method `name` of an object of this kind; `Other` if this kind has no such method, even if another kind has one.
    pub fn new(kind: &ExternKind, name: &str) -> Method {
        match Method::named(name) {
            method if kind.methods().contains(&method) => method,
            _ => Method::Other(name.to_owned()),
        }
    }
}

names! {
    /// An extern function of PSA, v1model or TNA.
    ExternFunction {
        // PSA and v1model.
        Assert = "assert",
        Assume = "assume",
        // PSA.
        PsaCloneE2e = "psa_clone_e2e",
        PsaCloneI2e = "psa_clone_i2e",
        PsaNormal = "psa_normal",
        PsaRecirculate = "psa_recirculate",
        PsaResubmit = "psa_resubmit",
        // v1model.
        Clone = "clone",
        Clone3 = "clone3",
        ClonePreservingFieldList = "clone_preserving_field_list",
        Digest = "digest",
        Hash = "hash",
        LogMsg = "log_msg",
        MarkToDrop = "mark_to_drop",
        Random = "random",
        Recirculate = "recirculate",
        RecirculatePreservingFieldList = "recirculate_preserving_field_list",
        Resubmit = "resubmit",
        ResubmitPreservingFieldList = "resubmit_preserving_field_list",
        Truncate = "truncate",
        UpdateChecksum = "update_checksum",
        UpdateChecksumWithPayload = "update_checksum_with_payload",
        VerifyChecksum = "verify_checksum",
        VerifyChecksumWithPayload = "verify_checksum_with_payload",
        // TNA.
        FunnelShiftRight = "funnel_shift_right",
        Invalidate = "invalidate",
        IsValidated = "is_validated",
        Max = "max",
        Min = "min",
        PortMetadataUnpack = "port_metadata_unpack",
        SizeInBits = "sizeInBits",
        SizeInBytes = "sizeInBytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::DeclKind;

    /// Every object, method and function that our include files declare is known here.
    #[test]
    fn the_include_files_declare_what_is_known() {
        let mut objects = 0;
        for include in ["psa.p4", "v1model.p4", "tna.p4", "t2na.p4"] {
            let files = crate::Files::new().with("all.p4", format!("#include <{include}>\n"));
            let parsed = crate::parse(&files, "all.p4", &crate::Options::default()).expect(include);
            for decl in &parsed.program.decls {
                match &decl.kind {
                    // The lowering emits dedicated statements for the declarations of core.p4.
                    DeclKind::Extern { name, .. } if name.name.starts_with("packet_") => {}
                    DeclKind::ExternFunction(proto)
                        if matches!(proto.name.name.as_str(), "verify" | "static_assert") => {}
                    DeclKind::Extern { name, methods, .. } => {
                        objects += 1;
                        let kind = ExternKind::named(&name.name);
                        assert!(!matches!(kind, ExternKind::Other(_)), "{include}: {kind}");
                        for method in methods.iter().filter(|m| m.proto.name.name != name.name) {
                            let method = Method::new(&kind, &method.proto.name.name);
                            let known = !matches!(method, Method::Other(_));
                            assert!(known, "{include}: {kind}.{method}");
                        }
                    }
                    DeclKind::ExternFunction(proto) => {
                        let function = ExternFunction::named(&proto.name.name);
                        let known = !matches!(function, ExternFunction::Other(_));
                        assert!(known, "{include}: {function}");
                    }
                    _ => {}
                }
            }
        }
        assert!(objects > 60, "{objects}");
    }

    #[test]
    fn names_of_others_are_kept() {
        assert_eq!(ExternKind::named("Sketch").to_string(), "Sketch");
        assert_eq!(
            Method::new(&ExternKind::Counter, "read"),
            Method::Other("read".into())
        );
        assert_eq!(ExternKind::named("register"), ExternKind::Register);
        assert_eq!(ExternKind::Register.name(), "Register");
    }
}
