//! Random PSA and TNA programs by seed: expressions, slices, concatenations, casts, stacks, calls, tables, loops.

use super::Psa;
use super::tna::Tna;

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Bool,
    Bit(u32),
    Int(u32),
}

const WIDTHS: [u32; 9] = [1, 4, 8, 16, 20, 32, 64, 70, 128];

/// Places that can be read and written, with their types.
const PLACES: [(&str, Ty); 25] = [
    ("hdr.x.a", Ty::Bit(8)),
    ("hdr.x.b", Ty::Bit(16)),
    ("hdr.x.c", Ty::Int(8)),
    ("hdr.x.d", Ty::Bit(32)),
    ("hdr.x.e", Ty::Bit(4)),
    ("hdr.x.f", Ty::Bit(4)),
    ("hdr.y.w", Ty::Bit(70)),
    ("hdr.y.v", Ty::Int(20)),
    ("hdr.y.u", Ty::Bit(1)),
    ("hdr.y.t", Ty::Bit(128)),
    ("hdr.st[0].a", Ty::Bit(8)),
    ("hdr.st[1].b", Ty::Bit(16)),
    ("hdr.st[2].a", Ty::Bit(8)),
    ("hdr.st[meta.i].a", Ty::Bit(8)),
    ("hdr.st[meta.i].b", Ty::Bit(16)),
    ("hdr.un.p.v", Ty::Bit(16)),
    ("hdr.un.q.v", Ty::Bit(32)),
    ("meta.i", Ty::Bit(8)),
    ("meta.l", Ty::Bit(64)),
    ("meta.n", Ty::Int(32)),
    ("meta.o", Ty::Bool),
    ("meta.s.a", Ty::Bit(20)),
    ("meta.s.b", Ty::Int(64)),
    ("local_bit", Ty::Bit(32)),
    ("local_int", Ty::Int(16)),
];

const HEADERS: [&str; 7] = [
    "hdr.x",
    "hdr.y",
    "hdr.st[0]",
    "hdr.st[2]",
    "hdr.st[meta.i]",
    "hdr.un.p",
    "hdr.un.q",
];

/// Writes one program.
pub struct Writer {
    dice: Dice,
    /// Whether names outside the current function are unknown, as in functions and parts of actions.
    inside_function: bool,
    tofino: bool,
}

fn declared(ty: Ty) -> String {
    match ty {
        Ty::Bool => "bool".into(),
        Ty::Bit(w) => format!("bit<{w}>"),
        Ty::Int(w) => format!("int<{w}>"),
    }
}

impl Writer {
    pub fn new(seed: u64) -> Writer {
        Writer {
            dice: Dice::new(seed),
            inside_function: false,
            tofino: false,
        }
    }

    fn place(&mut self, ty: Ty) -> Option<&'static str> {
        if self.inside_function {
            return None;
        }
        let fitting: Vec<_> = PLACES.iter().filter(|(_, t)| *t == ty).collect();
        (!fitting.is_empty()).then(|| self.dice.one(&fitting).0)
    }

    fn literal(&mut self, ty: Ty) -> String {
        let (low, high) = (self.dice.word(), self.dice.word());
        let mut value = u128::from(low) | u128::from(high) << 64;
        if self.dice.below(3) == 0 {
            value = *self.dice.one(&[0, 1, 2, u128::MAX]);
        }
        let cut = |w: u32| {
            if w >= 128 {
                value
            } else {
                value & ((1 << w) - 1)
            }
        };
        match ty {
            Ty::Bool => (value & 1 == 1).to_string(),
            Ty::Bit(w) => format!("{w}w{}", cut(w)),
            Ty::Int(w) => format!("(int<{w}>) {w}w{}", cut(w)),
        }
    }

    fn width(&mut self) -> u32 {
        *self.dice.one(&WIDTHS)
    }

    /// An expression of this type.
    fn expr(&mut self, ty: Ty, depth: u32) -> String {
        if depth == 0 || self.dice.below(5) == 0 {
            return match self.place(ty) {
                Some(place) if self.dice.below(4) > 0 => place.into(),
                _ => format!("({})", self.literal(ty)),
            };
        }
        let d = depth - 1;
        let same = |s: &mut Self| (s.expr(ty, d), s.expr(ty, d));
        match (ty, self.dice.below(9)) {
            (_, 0) => {
                let c = self.expr(Ty::Bool, d);
                let (a, b) = same(self);
                format!("({c} ? {a} : {b})")
            }
            (Ty::Bool, 1) => format!("(!{})", self.expr(Ty::Bool, d)),
            (Ty::Bool, 2) => {
                let (a, b) = same(self);
                format!("({a} {} {b})", self.dice.one(&["&&", "||"]))
            }
            (Ty::Bool, 3) if !self.inside_function => {
                format!("{}.isValid()", self.dice.one(&HEADERS))
            }
            (Ty::Bool, 4) if !self.inside_function => {
                let pairs = ["hdr.st[0] == hdr.st[1]", "hdr.st[meta.i] != hdr.st[2]"];
                format!("({})", self.dice.one(&pairs))
            }
            (Ty::Bool, _) => {
                let w = self.width();
                let of = *self.dice.one(&[Ty::Bit(w), Ty::Int(w.max(2))]);
                let (a, b) = (self.expr(of, d), self.expr(of, d));
                let op = self.dice.one(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({a} {op} {b})")
            }
            (_, 1) => format!("({}{})", self.dice.one(&["~", "-"]), self.expr(ty, d)),
            (_, 2 | 3) => {
                let (a, b) = same(self);
                let op = self.dice.one(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]);
                format!("({a} {op} {b})")
            }
            (_, 4) => {
                let (a, w) = (self.expr(ty, d), *self.dice.one(&[4, 8, 70]));
                let (op, b) = (*self.dice.one(&["<<", ">>"]), self.expr(Ty::Bit(w), d));
                format!("({a} {op} {b})")
            }
            (Ty::Int(w), 5 | 6) => format!("((int<{w}>) {})", self.expr(Ty::Bit(w), d)),
            (Ty::Int(w), _) => {
                let from = self.width().max(2);
                format!("((int<{w}>) {})", self.expr(Ty::Int(from), d))
            }
            (Ty::Bit(w), 5) if w > 1 => {
                let low = 1 + self.dice.below(w as usize - 1) as u32;
                let (a, b) = (self.expr(Ty::Bit(w - low), d), self.expr(Ty::Bit(low), d));
                format!("({a} ++ {b})")
            }
            (Ty::Bit(w), 6) => {
                let from = *self.dice.one(&[w, w + 3, (w + 60).min(128).max(w)]);
                let lo = self.dice.below((from - w) as usize + 1) as u32;
                let a = self.expr(Ty::Bit(from), d);
                format!("({a}[{}:{lo}])", lo + w - 1)
            }
            (Ty::Bit(w), 7) if w > 1 => format!("((bit<{w}>) {})", self.expr(Ty::Int(w), d)),
            (Ty::Bit(1), 8) => format!("((bit<1>) {})", self.expr(Ty::Bool, d)),
            (Ty::Bit(w), _) => {
                let from = self.width();
                format!("((bit<{w}>) {})", self.expr(Ty::Bit(from), d))
            }
        }
    }

    fn assignment(&mut self) -> String {
        let (place, ty) = *self.dice.one(&PLACES);
        match ty {
            Ty::Bit(w) if w > 2 && self.dice.below(4) == 0 => {
                let lo = self.dice.below(w as usize) as u32;
                let hi = lo + self.dice.below((w - lo) as usize) as u32;
                let value = self.expr(Ty::Bit(hi - lo + 1), 2);
                format!("{place}[{hi}:{lo}] = {value};")
            }
            _ => format!("{place} = {};", self.expr(ty, 3)),
        }
    }

    fn statement(&mut self, depth: u32) -> String {
        let kinds = if depth == 0 { 8 } else { 15 };
        match self.dice.below(kinds) {
            0 => {
                let state = self.dice.one(&["setValid", "setInvalid"]);
                format!("{}.{state}();", self.dice.one(&HEADERS))
            }
            1 => {
                let copies = [
                    "hdr.st[0] = hdr.st[1];",
                    "hdr.st[meta.i] = hdr.st[0];",
                    "hdr.st[1] = hdr.st[meta.i];",
                    "hdr.st.push_front(1);",
                    "hdr.st.pop_front(1);",
                    "hdr.st.pop_front(2);",
                    "hdr.st.push_front(2);",
                    "hdr.st[2] = { 8w1, 16w2 };",
                ];
                (*self.dice.one(&copies)).into()
            }
            2 => {
                let (a, b) = (self.expr(Ty::Bit(8), 1), self.expr(Ty::Bit(16), 1));
                let calls = [
                    format!("swap(hdr.x.b, hdr.st[meta.i].b, {b});"),
                    format!("both(meta.i, hdr.st[meta.i].a, {a});"),
                    format!("both(hdr.st[meta.i].a, meta.i, {a});"),
                    format!("swap(hdr.x.b, hdr.x.b, {b});"),
                    format!("hdr.x.b = twice(meta.i, {b});"),
                    format!("hdr.st[1].b = twice(hdr.st[meta.i].a, {b});"),
                ];
                self.dice.one(&calls).clone()
            }
            3 if self.tofino => self.tofino_call(),
            3 => (*self.dice.one(&[
                "r.write(hdr.x.a, hdr.x.d);",
                "hdr.x.d = r.read(hdr.x.a);",
                "hdr.x.b = h.get_hash({ hdr.x.a, hdr.y.w, meta.l, hdr.x.e });",
                "hdr.x.d = r.read((bit<8>) hdr.x.e);",
            ]))
            .into(),
            8 | 9 => {
                let c = self.expr(Ty::Bool, 2);
                let (yes, no) = (self.block(depth - 1), self.block(depth - 1));
                format!("if ({c}) {{ {yes} }} else {{ {no} }}")
            }
            10 => {
                let table = *self.dice.one(&["exact", "masked", "routed"]);
                let body = self.block(depth - 1);
                match self.dice.below(3) {
                    0 => format!("{table}.apply();"),
                    1 => format!("if ({table}.apply().hit) {{ {body} }}"),
                    _ => {
                        let other = self.block(depth - 1);
                        format!(
                            "switch ({table}.apply().action_run) {{ set_a: {{ {body} }} add: {{ {other} }} default: {{ }} }}"
                        )
                    }
                }
            }
            11 => {
                let (value, body) = (self.expr(Ty::Bit(4), 2), self.block(depth - 1));
                let other = self.block(depth - 1);
                format!(
                    "switch ({value}) {{ 0: 1: {{ {body} }} 7: {{ {other} }} default: {{ meta.i = 1; }} }}"
                )
            }
            12 => {
                let body = self.block(depth - 1);
                let stop = self.expr(Ty::Bool, 1);
                format!(
                    "for (bit<8> k in 8w0 .. 8w3) {{ if ({stop}) {{ {} }} {body} }}",
                    self.dice.one(&["break;", "continue;"])
                )
            }
            13 if self.dice.below(3) == 0 => {
                let c = self.expr(Ty::Bool, 2);
                format!("if ({c}) {{ {} }}", self.dice.one(&["exit;", "return;"]))
            }
            14 => "inner.apply(hdr, meta);".into(),
            _ => self.assignment(),
        }
    }

    /// A call of an object or function specific to TNA.
    fn tofino_call(&mut self) -> String {
        (*self.dice.one(&[
            "hdr.x.d = count.execute(hdr.x.a);",
            "hdr.x.d = pair_of.execute((bit<8>) hdr.x.e);",
            "mark.execute(meta.i);",
            "hdr.x.b[7:0] = look.execute(hdr.x.a);",
            "meta.l[31:0] = log.execute(meta.i);",
            "hdr.x.d = plain.read(hdr.x.a);",
            "local_bit = plain.write(meta.i, hdr.x.d);",
            "hdr.x.b = h.get({ hdr.x.a, hdr.y.w, meta.l, hdr.x.e });",
            "hdr.x.a = (bit<8>) dice.get();",
            "hdr.x.a = max(hdr.x.a, meta.i);",
            "hdr.x.c = min(hdr.x.c, hdr.x.c |-| 8s3);",
            "counts.count(hdr.x.a);",
            "counts.count(meta.i, hdr.x.d);",
            "hdr.x.a = m.execute(meta.i);",
            "meta.i = own.execute(hdr.x.a, MeterColor_t.YELLOW, 3);",
            "hdr.x.d = low.execute(hdr.x.d, hdr.x.a);",
            "meta.i = red.execute(local_bit, meta.i);",
            "dprsr.mirror_type = 1;",
            "dprsr.mirror_type = 0;",
            "dprsr.digest_type = 2;",
            "invalidate(dprsr.digest_type);",
            "dprsr.resubmit_type = 1;",
            "invalidate(dprsr.resubmit_type);",
            "tm.ucast_egress_port = (PortId_t) hdr.x.a;",
            "tm.ucast_egress_port[3:0] = hdr.x.e;",
            "invalidate(tm.ucast_egress_port);",
            "invalidate(hdr.x.a);",
            "meta.o = is_validated(tm.mcast_grp_a);",
            "meta.o = is_validated(hdr.st[1].a);",
            "tm.mcast_grp_a = hdr.x.b;",
            "tm.copy_to_cpu = 1;",
            "dprsr.drop_ctl = (bit<3>) hdr.x.e[2:0];",
            "hdr.x.d = (bit<32>) tm.ucast_egress_port;",
            "funnel_shift_right(hdr.x.d, local_bit, hdr.x.d, 5);",
            "hdr.x.d = sizeInBytes(hdr.y) + sizeInBits(hdr.x);",
        ]))
        .into()
    }

    fn block(&mut self, depth: u32) -> String {
        let n = 1 + self.dice.below(3);
        let statements: Vec<_> = (0..n).map(|_| self.statement(depth)).collect();
        statements.join("\n        ")
    }

    fn parts(&mut self) -> Parts {
        self.inside_function = true;
        let function = self.expr(Ty::Bit(16), 3);
        let taken = self.expr(Ty::Bool, 2);
        self.inside_function = false;
        let action = self.expr(Ty::Bit(16), 2);
        let body: Vec<_> = (0..8).map(|_| self.statement(3)).collect();
        let (inner, key, wide) = (
            self.assignment()
                .replace("local_bit", "meta.j")
                .replace("local_int", "meta.k"),
            self.expr(Ty::Bit(16), 2),
            self.expr(Ty::Bit(32), 2),
        );
        let ty = declared(Ty::Bit(16));
        let decls = format!(
            "header x_h {{ bit<8> a; bit<16> b; int<8> c; bit<32> d; bit<4> e; bit<4> f; }}
             header y_h {{ bit<70> w; int<20> v; bit<1> u; bit<5> pad; bit<128> t; }}
             header s_h {{ bit<8> a; bit<16> b; }}
             header p_h {{ bit<16> v; }}
             header q_h {{ bit<32> v; }}
             struct pair_t {{ bit<32> a; bit<32> b; }}
             header_union un_u {{ p_h p; q_h q; }}
             struct in_t {{ bit<20> a; int<64> b; }}
             {ty} twice(inout bit<8> x, in {ty} y) {{
                 x = x + 1;
                 if ({taken}) {{ return y; }}
                 return {function} ^ y;
             }}
             control inner_c(inout headers_t hdr, inout meta_t meta) {{ apply {{ {inner} hdr.st[0] = hdr.st[1]; }} }}",
        );
        // Types must precede their uses.
        let (types, rest) = decls.split_at(decls.find("bit<16> twice").unwrap_or(0));
        let optional = if self.tofino { "ternary" } else { "optional" };
        let locals = format!(
            "inner_c() inner;
             bit<32> local_bit = 5;
             int<16> local_int;
             action swap(inout bit<16> a, out bit<16> b, in bit<16> c) {{ a = c; b = {action} + a; }}
             action both(inout bit<8> a, inout bit<8> b, in bit<8> c) {{ a = c + 1; b = a ^ c; meta.i = c; }}
             action set_a(bit<8> v, bit<70> wide) {{ hdr.x.a = v; hdr.y.w = wide; }}
             action add(bit<16> v) {{ hdr.x.b = hdr.x.b + v; }}
             table exact {{ key = {{ hdr.x.a: exact; hdr.x.isValid(): exact @name(\"valid\"); }}
                 actions = {{ set_a; add; NoAction; }} const default_action = add(3); }}
             table masked {{ key = {{ {key}: ternary @name(\"t\"); hdr.x.a: range @name(\"r\"); hdr.y.w: {optional} @name(\"o\"); }}
                 actions = {{ set_a; add; NoAction; }} }}
             table routed {{ key = {{ {wide}: lpm @name(\"l\"); }} actions = {{ set_a; add; NoAction; }} }}"
        );
        Parts {
            types: types.into(),
            rest: rest.into(),
            locals,
            body: body.join("\n        "),
        }
    }

    /// The text of a PSA program.
    pub fn program(mut self) -> String {
        let parts = self.parts();
        let parser = states("start", "verify(hdr.st.last.a != 9, error.NoMatch);");
        let locals = format!(
            "Register<bit<32>, bit<8>>(200) r;
             Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) h;
             {}",
            parts.locals
        );
        let ingress = format!("send_to_port(ostd, (PortId_t) 1);\n        {}", parts.body);
        let text = Psa {
            decls: &parts.types,
            headers: HEADER_FIELDS,
            meta: META_FIELDS,
            parser: &parser,
            locals: &locals,
            ingress: &ingress,
            ..Psa::default()
        }
        .text();
        parts.with_functions(&text)
    }

    /// The text of a TNA program.
    pub fn tofino_program(mut self) -> String {
        self.tofino = true;
        let parts = self.parts();
        let parser = states("go", "sum.add(hdr.st.last); todo.decrement(1);")
            .replacen(
                "pkt.extract(hdr.x);",
                "pkt.extract(hdr.x); todo.set(hdr.x.a, 200, 4, 2, 1); rest.subtract({ hdr.x.b });
                 rest.subtract_all_and_deposit(meta.rest); meta.port = 1;",
                1,
            )
            .replace("default: second;", "(_, 4w9): stop; default: known_or_not;");
        let parser = format!(
            "{parser}
             state counted {{
                 meta.bad = sum.verify();
                 transition select(todo.is_zero(), todo.is_negative()) {{ (true, _): accept; (_, true): second; (_, _): pairs; }}
             }}
             state known_or_not {{ transition select(hdr.x.a) {{ known: second; default: counted; }} }}
             state stop {{ transition reject; }}"
        );
        let (value, condition) = (self.dice.below(200), *self.dice.one(&["<", "==", ">="]));
        let locals = format!(
            "{RANDOM_OBJECTS}
             RegisterAction<pair_t, bit<8>, bit<32>>(pairs) pair_of = {{
                 void apply(inout pair_t p, out bit<32> rv) {{
                     rv = p.b;
                     if (p.a {condition} {value}) {{ p.a = p.a |+| hdr.x.d; }} else {{ p.b = p.a; p.a = 0; return; }}
                     p.b = p.b + 1;
                 }}
             }};
             {}",
            parts.locals
        );
        let ingress = format!(
            "tm.ucast_egress_port = 1;\n        {}\n        tm.rid = (bit<16>) prsr.parser_err;",
            parts.body
        );
        let text = Tna {
            decls: &parts.types,
            headers: HEADER_FIELDS,
            meta: TOFINO_META_FIELDS,
            parser_locals: "Checksum() sum; Checksum() rest; ParserCounter() todo; value_set<bit<8>>(4) known;",
            parser: &parser,
            locals: &locals,
            ingress: &ingress,
            deparser_locals: "Checksum() c; Mirror() mirror; Resubmit() again; Digest<p_h>() learn;",
            deparser: "hdr.x.b = c.update({ hdr.x.d, hdr.x.a, hdr.x.c, meta.rest }, true);
                       if (dprsr.mirror_type == 1) { mirror.emit<q_h>(5, { hdr.x.d }); }
                       if (dprsr.resubmit_type == 1) { again.emit<p_h>({ hdr.x.b }); }
                       if (dprsr.digest_type == 2) { learn.pack({ hdr.x.b }); }
                       pkt.emit(hdr);",
            ..Tna::default()
        }
        .text();
        parts.with_functions(&text)
    }
}

/// Parts that programs of all architectures contain.
struct Parts {
    types: String,
    rest: String,
    locals: String,
    body: String,
}

impl Parts {
    /// Inserts the declarations that use the headers' struct after it.
    fn with_functions(&self, text: &str) -> String {
        text.replacen("parser IP(", &format!("{}\nparser IP(", self.rest), 1)
    }
}

const HEADER_FIELDS: &str = "x_h x; y_h y; s_h[3] st; un_u un;";
const META_FIELDS: &str = "bit<8> i; bit<64> l; int<32> n; bool o; in_t s; bit<32> j; int<16> k;";
const TOFINO_META_FIELDS: &str =
    "bit<8> i; bit<64> l; int<32> n; bool o; in_t s; bit<32> j; int<16> k;
             bit<16> rest; bool bad; bit<8> port;";

const RANDOM_OBJECTS: &str = "
             Register<bit<32>, bit<8>>(200, 7) cells;
             RegisterAction<bit<32>, bit<8>, bit<32>>(cells) count = {
                 void apply(inout bit<32> v, out bit<32> rv) { v = v + 1; rv = v; }
             };
             RegisterAction<bit<32>, bit<8>, void>(cells) mark = {
                 void apply(inout bit<32> v) { v = v ^ hdr.x.d; }
             };
             RegisterAction<bit<32>, bit<8>, bit<8>>(cells) look = {
                 void apply(inout bit<32> v, out bit<8> rv) { rv = this.predicate(v > 9, v < hdr.x.d); }
             };
             RegisterAction<bit<32>, bit<8>, bit<32>>(cells) log = {
                 void apply(inout bit<32> v, out bit<32> rv) { rv = v; v = hdr.x.d; }
             };
             Register<bit<32>, bit<8>>(30) plain;
             Register<pair_t, bit<8>>(16, {5, 6}) pairs;
             Hash<bit<16>>(HashAlgorithm_t.CRC16) h;
             Random<bit<5>>() dice;
             Counter<bit<64>, bit<8>>(64, CounterType_t.PACKETS_AND_BYTES) counts;
             Meter<bit<8>>(32, MeterType_t.PACKETS) m;
             Meter<bit<8>>(32, MeterType_t.BYTES, 30, 20, 10) own;
             Lpf<bit<32>, bit<8>>(8) low;
             Wred<bit<32>, bit<8>>(8, 9, 4) red;";

/// A parser's states from `first` on; `checked` is inserted for each pair.
fn states(first: &str, checked: &str) -> String {
    let text = "state FIRST {
                    pkt.extract(hdr.x);
                    transition select(hdr.x.a, hdr.x.e) {
                        (0 .. 63, _): pairs;
                        (64 &&& 0xc0, 3): second;
                        (_, 4w7): union_p;
                        (_, 4w8): union_q;
                        default: second;
                    }
                }
                state second { pkt.extract(hdr.y); transition accept; }
                state pairs {
                    pkt.extract(hdr.st.next);
                    CHECKED
                    transition select(hdr.st.last.a[0:0]) { 1: pairs; 0: accept; }
                }
                state union_p { pkt.extract(hdr.un.p); transition accept; }
                state union_q { pkt.extract(hdr.un.q); transition accept; }";
    text.replacen("FIRST", first, 1)
        .replacen("CHECKED", checked, 1)
}
