import anabranch as ab


class Blest(ab.Scheduler):
    """BLEST (Ferlin and others, IFIP Networking 2016) with the paper's parameters."""

    def __init__(self, delta=0.001):
        self.delta, self.scale, self.blocked, self.last_step = delta, 1.0, False, None

    def schedule(self, round):
        fast = round.fastest_live()
        if fast is None or len(round.candidates) < 2:
            return fast and round.fill(fast)
        if fast.srtt_ns is not None:
            self.step(round.now_ns, fast.srtt_ns)
        self.send(round, fast)
        waits = round.window_blocked if round.backlog else round.send_buffer_full
        self.blocked |= fast.eligible and waits

    def send(self, round, fast):
        if fast.eligible and not round.fill(fast):
            return
        while slow := round.fastest_eligible():
            if self.would_block(round.send_window, fast, slow) or not round.send_next(slow):
                return

    def step(self, now, rtt):
        if self.last_step is None:
            self.last_step = now
        if now - self.last_step >= rtt:
            self.scale = min(max(self.scale + (self.delta if self.blocked else -self.delta), 0.0), 4.0)
            self.blocked, self.last_step = False, now

    def would_block(self, window, fast, slow):
        if fast.srtt_ns is None or slow.srtt_ns is None:
            return False
        r = slow.srtt_ns / max(fast.srtt_ns, 1)
        left = window - slow.mss * (slow.in_flight + slow.queued + 1)
        return fast.mss * (fast.cwnd + (r - 1) / 2) * r * self.scale > left

    def values(self):
        return "blest.lambda", self.scale
