// Eight faults in declared order; what they do adds up, and only a drop ends the evaluation.
control FaultEngine(inout metadata_t meta) {
    FaultUnit() u0; FaultUnit() u1; FaultUnit() u2; FaultUnit() u3;
    FaultUnit() u4; FaultUnit() u5; FaultUnit() u6; FaultUnit() u7;
    apply {
        u0.apply(meta);
        if (meta.verdict == VERDICT_FORWARD) { u1.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u2.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u3.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u4.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u5.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u6.apply(meta); }
        if (meta.verdict == VERDICT_FORWARD) { u7.apply(meta); }
    }
}
