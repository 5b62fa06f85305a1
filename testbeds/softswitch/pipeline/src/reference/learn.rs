//! What a stateful ALU's comparators say, and `LearnAction`: see [`crate::compile::tna_learn`].

use super::frame::{of_words, to_words};
use super::place::Place;
use super::salu::Cell;
use super::value::{Bits, Value, width};
use super::{Interpreter, Result};
use crate::compile::tna_learn::{
    DIGEST_BITS, DIGEST_SHIFT, WAY_SHIFT, comparisons, is_learned, is_of, ways, ways_of,
};
use crate::externs::hash::Algorithm;
use p4lang::ir::{Action, Arg, Expr, ExternId, LValue, Table};

/// A register action's method that runs.
#[derive(Clone)]
pub(super) struct InMethod<'p> {
    pub(super) action: &'p Action,
    /// Index of its cell.
    pub(super) index: u64,
    /// Bits of a cell.
    pub(super) bits: u64,
    /// What an address has beside that.
    pub(super) base: u64,
    /// The cell as it was read.
    pub(super) original: Value,
}

impl<'p> Interpreter<'_, 'p> {
    /// Bit n of the result is set where n is what the comparisons say, the first in the lowest place: those written, or all
    /// of the method's. They see the cell as it was read.
    pub(super) fn predicate(&mut self, args: &'p [Arg], result: Option<&'p LValue>) -> Result<()> {
        let Some(method) = self.method.clone() else {
            return Ok(());
        };
        let written = args.iter().filter_map(|arg| match arg {
            Arg::In(e) => Some(e),
            _ => None,
        });
        let mut asked: Vec<&Expr> = written.collect();
        if asked.is_empty() {
            asked = comparisons(method.action);
        }
        let mut n = 0;
        for (i, e) in asked.into_iter().enumerate() {
            let cell = method.action.params[0].var.index();
            let now = std::mem::replace(&mut self.env().vars[cell], method.original.clone());
            let bit = self.truth(e, "a comparison");
            self.env().vars[cell] = now;
            n |= u32::from(bit?) << i;
        }
        self.returned(result, |ty| {
            Value::Bits(Bits::new(width(ty), 1u64.checked_shl(n).unwrap_or(0)))
        })
    }

    /// The digest that a table's actions learn, if it has one, and the ways that it says.
    pub(super) fn digest_of(&mut self, table: &'p Table) -> Result<Option<(u64, Option<u64>)>> {
        let mut hashed = Vec::new();
        for key in table.key.iter().filter(|k| is_learned(k)) {
            hashed.push(self.expr(&key.expr)?);
        }
        let Some(algorithm) = Algorithm::of_tofino("RANDOM").filter(|_| !hashed.is_empty()) else {
            return Ok(None);
        };
        let data = Value::Struct(hashed);
        self.influences(&data.flat(), || format!("the digest of {}", table.name));
        let hash = self.hash(algorithm, &data, None, false, DIGEST_BITS);
        Ok(Some(((hash | 1) << DIGEST_SHIFT, ways_of(table))))
    }

    /// `LearnAction.execute`
    pub(super) fn learn(
        &mut self,
        id: ExternId,
        index: u64,
        (outs, result): (&'p [Arg], Option<&'p LValue>),
    ) -> Result<()> {
        let (Some((digest, said)), Some(register)) = (self.digest, self.target(id)) else {
            return Ok(());
        };
        let (Some(r), Some((control, action))) = (self.register_of(id), self.body_of(id, "apply"))
        else {
            return Ok(());
        };
        self.executed(register);
        let mut places: Vec<Option<Place>> = Vec::new();
        places.push(match result {
            Some(to) => Some(self.resolve(to)?),
            None => None,
        });
        for out in outs {
            places.push(match out {
                Arg::Out(to) | Arg::InOut(to) => Some(self.resolve(to)?),
                _ => None,
            });
        }
        let ty = |i: usize| &control.vars[action.params[i].var.index()].ty;
        let seen = Value::Bits(Bits::new(width(ty(1)), digest));
        let bits = u64::from(self.cell_of(r, 0, ty(0)).flat().width);
        let cells = self.rows(r);
        let ways = ways(cells, bits, said);
        let inside = index.checked_rem(cells / ways).unwrap_or(0);
        let at = |way: u64| way * (cells / ways) + inside;
        let no = || Value::Bits(Bits::bool(false));
        let mut matches = Vec::new();
        for way in 0..ways {
            let cell = self.cell_of(r, at(way), ty(0));
            matches.push(ways > 1 && self.any(action, [cell, seen.clone(), no()], false)?);
        }
        let mut given: Vec<Option<Value>> = vec![None; action.params.len() - 3];
        let mut learned = false;
        for way in 0..ways {
            let others = matches.iter().zip(0..).filter(|(_, other)| *other != way);
            let learn = learned || others.into_iter().any(|(matches, _)| *matches);
            let learn = Value::Bits(Bits::bool(learn));
            let cell = self.cell_of(r, at(way), ty(0));
            let params = [cell.clone(), seen.clone(), learn];
            learned |= ways > 1 && self.any(action, params.clone(), true)?;
            self.set(action, params);
            let method = InMethod {
                action,
                index: inside,
                bits,
                base: way << WAY_SHIFT,
                original: cell,
            };
            let cell = (Cell::Indexed(r, at(way)), at(way));
            self.run_method((id, "execute"), method, &action.params[3..], cell)?;
            for (all, param) in given.iter_mut().zip(&action.params[3..]) {
                let own = self.env().vars[param.var.index()].clone();
                *all = Some(match all.take() {
                    None => own,
                    Some(before) => {
                        let words = to_words(&before).into_iter().zip(to_words(&own));
                        let ored: Vec<u64> = words.map(|(a, b)| a | b).collect();
                        let ty = &control.vars[param.var.index()].ty;
                        of_words(self.program, ty, &ored, 0).0
                    }
                });
            }
        }
        for (place, value) in places.into_iter().zip(given) {
            if let (Some(place), Some(value)) = (place, value) {
                self.write(&place, value);
            }
        }
        Ok(())
    }

    /// Sets a LearnAction's first parameters.
    fn set(&mut self, action: &Action, params: [Value; 3]) {
        for (param, value) in action.params.iter().zip(params) {
            self.env().vars[param.var.index()] = value;
        }
    }

    /// Whether any of a LearnAction's comparisons is true: those with `learn`, or those of the digest without it.
    fn any(&mut self, action: &'p Action, params: [Value; 3], learns: bool) -> Result<bool> {
        self.set(action, params);
        let mut any = false;
        for e in comparisons(action) {
            if is_of(action, e, learns) {
                any |= self.truth(e, "a comparison")?;
            }
        }
        Ok(any)
    }
}
