// The fault engine: docs/fault-engine.md.
//
// Ordinal, ChannelState, Crc32 (used by Decide) and Tally are small controls that each architecture defines in its externs.p4.

typedef bit<8> effect_t;
const effect_t EFFECT_DROP = 1;
const effect_t EFFECT_DELAY = 2;
const effect_t EFFECT_DUPLICATE = 3;

typedef bit<8> selection_t;
const selection_t SELECT_ALWAYS = 0;
const selection_t SELECT_NTH = 1;
const selection_t SELECT_EVERY = 2;
const selection_t SELECT_PROBABILITY = 3;
const selection_t SELECT_GILBERT_ELLIOTT = 4;

// Which step of the timeline is in force; 0 = no fault is. One write here starts all faults of a step together.
control Timeline(inout metadata_t meta) {
    action set_epoch(bit<16> epoch) {
        meta.epoch = epoch;
    }
    table epoch {
        actions = { set_epoch; }
        default_action = set_epoch(0);
    }
    apply {
        epoch.apply();
    }
}

// One fault of the scenario: which flows it acts on and when, which of their packets it selects, what it does to them.
control FaultUnit(inout metadata_t meta) {
    Ordinal() ordinals;
    ChannelState() channels;
    Decide() draw_first;
    Decide() draw_second;
    Tally() fired;

    selection_t selection = SELECT_ALWAYS;
    effect_t effect_ = 0;
    time_ns_t delay = 0;
    bit<8> cell_ = 0;
    bit<32> period = 0;
    bit<32> key_ = 0;
    bit<32> flow_key_ = 0;
    bit<32> limit_ = 0;
    bit<32> to_bad_ = 0;
    bit<32> to_good_ = 0;
    bit<32> loss_good_ = 0;
    bool loss_in_good_ = false;

    action always(bit<8> cell, effect_t effect, time_ns_t delay_ns) {
        selection = SELECT_ALWAYS;
        cell_ = cell;
        effect_ = effect;
        delay = delay_ns;
    }
    action nth(bit<8> cell, effect_t effect, time_ns_t delay_ns, bit<32> n) {
        selection = SELECT_NTH;
        cell_ = cell;
        effect_ = effect;
        delay = delay_ns;
        period = n;
    }
    action every(bit<8> cell, effect_t effect, time_ns_t delay_ns, bit<32> n) {
        selection = SELECT_EVERY;
        cell_ = cell;
        effect_ = effect;
        delay = delay_ns;
        period = n;
    }
    action probability(bit<8> cell, effect_t effect, time_ns_t delay_ns,
                       bit<32> key, bit<32> flow_key, bit<32> limit) {
        selection = SELECT_PROBABILITY;
        cell_ = cell;
        effect_ = effect;
        delay = delay_ns;
        key_ = key;
        flow_key_ = flow_key;
        limit_ = limit;
    }
    action gilbert_elliott(bit<8> cell, effect_t effect, time_ns_t delay_ns,
                           bit<32> key, bit<32> flow_key,
                           bit<32> to_bad, bit<32> to_good, bit<32> loss_bad,
                           bit<32> loss_good, bit<1> loss_in_good) {
        selection = SELECT_GILBERT_ELLIOTT;
        cell_ = cell;
        effect_ = effect;
        delay = delay_ns;
        key_ = key;
        flow_key_ = flow_key;
        to_bad_ = to_bad;
        to_good_ = to_good;
        limit_ = loss_bad;
        loss_good_ = loss_good;
        loss_in_good_ = loss_in_good == 1;
    }
    // `select` is a reserved word of P4, but not a reserved name.
    @name("select")
    table select_fault {
        key = {
            meta.flows: ternary;
            meta.epoch: range;
        }
        actions = { always; nth; every; probability; gilbert_elliott; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    apply {
        if (select_fault.apply().hit) {
            bool fire = false;
            if (selection == SELECT_ALWAYS) {
                fire = true;
            } else {
                // `every` counts modulo its period, the others for ever.
                bit<32> wrap = 0;
                if (selection == SELECT_EVERY) {
                    wrap = period;
                }
                bit<32> ordinal;
                ordinals.apply(cell_, wrap, ordinal);
                if (selection == SELECT_NTH || selection == SELECT_EVERY) {
                    fire = ordinal == period;
                } else if (selection == SELECT_PROBABILITY) {
                    bit<32> u;
                    draw_first.apply(key_, flow_key_, ordinal, u);
                    fire = u <= limit_;
                } else {
                    bit<32> u;
                    bit<32> v;
                    bit<1> bad;
                    // 2 * ordinal and 2 * ordinal + 1: wires into a hash, where a shift would be an instruction, and a stage.
                    draw_first.apply(key_, flow_key_, ordinal[30:0] ++ 1w0, u);
                    draw_second.apply(key_, flow_key_, ordinal[30:0] ++ 1w1, v);
                    channels.apply(cell_, u <= to_bad_, u <= to_good_, bad);
                    if (bad == 1) {
                        fire = v <= limit_;
                    } else {
                        fire = loss_in_good_ && v <= loss_good_;
                    }
                }
            }
            if (fire) {
                fired.apply(cell_);
                if (effect_ == EFFECT_DROP) {
                    meta.verdict = VERDICT_DROP;
                } else if (effect_ == EFFECT_DELAY) {
                    meta.delay_ns = meta.delay_ns + delay;
                } else if (effect_ == EFFECT_DUPLICATE) {
                    meta.duplicate = true;
                }
            }
        }
    }
}

// Turns "delay" and "duplicate" into a hold header; both copies of a duplicate go round once. So does a packet that must
// come in once more, whatever the faults did.
control Detain(inout headers_t hdr, inout metadata_t meta, in bool once_more) {
    apply {
        if (meta.verdict == VERDICT_FORWARD && (once_more || meta.duplicate || meta.delay_ns != 0)) {
            hdr.hold.setValid();
            hdr.hold.deadline = meta.now + meta.delay_ns;
            hdr.hold.port = meta.port;
            meta.verdict = VERDICT_HOLD;
        }
    }
}

// A packet with a hold header goes round until its deadline, and is then as if it had just come in.
control HoldGate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // The sign of the difference, so that the clock may wrap.
        time_ns_t late = meta.now - hdr.hold.deadline;
        if (late[47:47] == 1) {
            meta.verdict = VERDICT_HOLD;
        } else {
            hdr.hold.setInvalid();
        }
    }
}
