//! Every operator at every kind of width, compared with integers of the host.

use crate::support::{Psa, one};
use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, Zero};
use pipeline::Switch;
use proptest::prelude::*;

/// A packet with two operands and a shift distance; the program answers with one result per operator.
struct Bench {
    switch: Switch,
    w: u32,
    signed: bool,
}

const OPS: [&str; 17] = [
    "a + b",
    "a - b",
    "a * b",
    "a & b",
    "a | b",
    "a ^ b",
    "~a",
    "-a",
    "a << s",
    "a >> s",
    "a |+| b",
    "a |-| b",
    "(a == b) ? w1 : w0",
    "(a != b) ? w1 : w0",
    "(a < b) ? w1 : w0",
    "(a <= b) ? w1 : w0",
    "(a > b) ? w1 : ((a >= b) ? w0 : w1 + w1)",
];

fn padding(w: u32) -> String {
    match w % 8 {
        0 => String::new(),
        n => format!("bit<{}> pad;", 8 - n),
    }
}

fn bench(w: u32, signed: bool) -> Bench {
    let ty = if signed {
        format!("int<{w}>")
    } else {
        format!("bit<{w}>")
    };
    let pad = padding(w);
    let decls = format!(
        "header in_h {{ {ty} a; {} {ty} b; {} bit<16> s; }} header out_h {{ {pad} {ty} v; }}",
        pad,
        pad.replace("pad", "pad2")
    );
    let fields: String = (0..OPS.len()).map(|i| format!("out_h o{i};")).collect();
    let one = if signed {
        format!("{w}s1")
    } else {
        format!("{w}w1")
    };
    let zero = if signed {
        format!("{w}s0")
    } else {
        format!("{w}w0")
    };
    let body: String = OPS
        .iter()
        .enumerate()
        .map(|(i, op)| {
            let op = op.replace("w1", &one).replace("w0", &zero);
            format!("hdr.o{i}.setValid(); hdr.o{i}.v = {op};\n")
        })
        .collect();
    let ingress = format!(
        "{ty} a = hdr.operands.a; {ty} b = hdr.operands.b; bit<16> s = hdr.operands.s;
         hdr.operands.setInvalid(); {body} send_to_port(ostd, (PortId_t) 1);"
    );
    let switch = Psa {
        decls: &decls,
        headers: &format!("in_h operands; {fields}"),
        parser: "state start { pkt.extract(hdr.operands); transition accept; }",
        ingress: &ingress,
        ..Psa::default()
    }
    .load();
    Bench { switch, w, signed }
}

impl Bench {
    fn value(&self, pattern: &BigUint) -> BigInt {
        let v = BigInt::from(pattern.clone());
        if self.signed && pattern.bit(u64::from(self.w) - 1) {
            v - (BigInt::from(1) << self.w)
        } else {
            v
        }
    }

    fn pattern(&self, v: &BigInt) -> BigUint {
        let m = BigInt::from(1) << self.w;
        (((v % &m) + &m) % &m).to_biguint().expect("not negative")
    }

    fn saturated(&self, v: BigInt) -> BigInt {
        let (low, high) = if self.signed {
            let half = BigInt::from(1) << (self.w - 1);
            (-half.clone(), half - 1)
        } else {
            (BigInt::zero(), (BigInt::from(1) << self.w) - 1)
        };
        v.clamp(low, high)
    }

    fn expected(&self, a: &BigUint, b: &BigUint, s: u16) -> Vec<BigUint> {
        let (x, y) = (self.value(a), self.value(b));
        let floor_shift = || {
            let d = BigInt::from(1) << s;
            let q = &x / &d;
            if x.is_negative() && (&x % &d) != BigInt::zero() {
                q - 1
            } else {
                q
            }
        };
        let all = (BigUint::from(1u8) << self.w) - 1u8;
        let flag = |c: bool| BigInt::from(u8::from(c));
        let order = if x > y {
            1
        } else if x == y {
            0
        } else {
            2
        };
        [
            &x + &y,
            &x - &y,
            &x * &y,
            BigInt::from(a & b),
            BigInt::from(a | b),
            BigInt::from(a ^ b),
            BigInt::from(a ^ &all),
            -&x,
            &x << s,
            floor_shift(),
            self.saturated(&x + &y),
            self.saturated(&x - &y),
            flag(x == y),
            flag(x != y),
            flag(x < y),
            flag(x <= y),
            BigInt::from(order),
        ]
        .iter()
        .map(|v| self.pattern(v))
        .collect()
    }

    fn check(&mut self, a: &BigUint, b: &BigUint, s: u16) {
        let mask = (BigUint::from(1u8) << self.w) - 1u8;
        let (a, b) = (a & &mask, b & &mask);
        let bytes = self.w.div_ceil(8) as usize;
        let shift = bytes as u32 * 8 - self.w;
        let field = |v: &BigUint| {
            let be = (v << shift).to_bytes_be();
            let mut field = vec![0; bytes - be.len().min(bytes)];
            field.extend(be);
            field
        };
        let packet = [field(&a), field(&b), s.to_be_bytes().to_vec()].concat();
        let out = one(&mut self.switch, &packet);
        let got: Vec<BigUint> = out.chunks(bytes).map(BigUint::from_bytes_be).collect();
        for ((op, got), expected) in OPS.iter().zip(got).zip(self.expected(&a, &b, s)) {
            assert_eq!(
                got, expected,
                "{op} with a={a:#x} b={b:#x} s={s}, {} bits, signed {}",
                self.w, self.signed
            );
        }
    }
}

/// Values of `w` bits at the edges and in between.
fn operand(w: u32) -> impl Strategy<Value = BigUint> {
    let bit = |n| BigUint::from(1u8) << n;
    prop_oneof![
        prop::collection::vec(any::<u8>(), w.div_ceil(8) as usize)
            .prop_map(|bytes| BigUint::from_bytes_be(&bytes)),
        (0..w).prop_map(bit),
        (0..=w).prop_map(move |n| bit(n) - 1u8),
        (0u8..3).prop_map(BigUint::from),
        Just(bit(w) - 1u8),
    ]
}

macro_rules! widths {
    ($($name:ident: $w:expr, $signed:expr;)*) => {$(
        #[test]
        fn $name() {
            let bench = std::cell::RefCell::new(bench($w, $signed));
            proptest!(ProptestConfig::with_cases(200), |(a in operand($w), b in operand($w), s in 0u16..$w + 12)| {
                let mut bench = bench.borrow_mut();
                bench.check(&a, &b, s);
                bench.check(&a, &a, s);
            });
        }
    )*};
}

widths! {
    bit_1: 1, false;
    bit_7: 7, false;
    bit_8: 8, false;
    bit_32: 32, false;
    bit_48: 48, false;
    bit_63: 63, false;
    bit_64: 64, false;
    bit_65: 65, false;
    bit_100: 100, false;
    bit_128: 128, false;
    bit_129: 129, false;
    bit_192: 192, false;
    bit_521: 521, false;
    bit_2048: 2048, false;
    int_2: 2, true;
    int_8: 8, true;
    int_32: 32, true;
    int_63: 63, true;
    int_64: 64, true;
    int_65: 65, true;
    int_128: 128, true;
    int_129: 129, true;
    int_256: 256, true;
    int_2047: 2047, true;
}

#[test]
fn casts_slices_and_concatenations() {
    let mut switch = Psa {
        decls: "header in_h { bit<64> x; int<8> i; bit<8> flag; }
                header out_h {
                    bit<8> low; bit<8> mid; bit<128> wide; bit<72> joined; int<32> extended; int<96> far; bit<8> cut;
                    bit<8> inserted; bit<80> inserted_wide; bit<8> of_bool; bit<8> of_wide;
                }",
        headers: "in_h x; out_h o;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        ingress: "
            hdr.o.setValid();
            hdr.o.low = (bit<8>) hdr.x.x;
            hdr.o.mid = hdr.x.x[15:8];
            hdr.o.wide = (bit<128>) hdr.x.x << 60;
            hdr.o.joined = hdr.x.x ++ 8w0xab;
            hdr.o.extended = (int<32>) hdr.x.i;
            hdr.o.far = (int<96>) hdr.x.i;
            hdr.o.cut = (bit<8>) ((bit<4>) hdr.x.x);
            hdr.o.inserted = 0xff;
            hdr.o.inserted[5:2] = hdr.x.x[3:0];
            hdr.o.inserted_wide = 0;
            hdr.o.inserted_wide[71:60] = hdr.x.x[11:0];
            bool b = (bool) hdr.x.flag[0:0];
            hdr.o.of_bool = 7w0 ++ (bit<1>) b;
            hdr.o.of_wide = hdr.o.wide[67:60];
            hdr.x.setInvalid();
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load();
    let x: u64 = 0x1122_3344_5566_7788;
    let mut expected = vec![0x88, 0x77];
    expected.extend((u128::from(x) << 60).to_be_bytes());
    expected.extend(x.to_be_bytes());
    expected.push(0xab);
    expected.extend((-3i32).to_be_bytes());
    expected.extend(&(-3i128).to_be_bytes()[4..]);
    expected.extend([0x08, 0xe3]);
    expected.extend(&(u128::from(x & 0xfff) << 60).to_be_bytes()[6..]);
    expected.extend([1, 0x88]);
    let packet = [x.to_be_bytes().to_vec(), vec![(-3i8) as u8, 0x81]].concat();
    assert_eq!(one(&mut switch, &packet), expected);
}

#[test]
fn division_and_modulo_by_constants() {
    let mut switch = Psa {
        decls: "header h_t { bit<32> a; bit<32> q; bit<32> r; }",
        headers: "h_t h;",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ingress: "hdr.h.q = hdr.h.a / 7; hdr.h.r = hdr.h.a % 7; send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load();
    let out = one(&mut switch, &[0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(out, [0, 0, 0, 100, 0, 0, 0, 14, 0, 0, 0, 2]);
}
