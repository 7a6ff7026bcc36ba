"""Numbers on the stability of laws: closed-loop poles, margins of gain and delay, passivity over frequency."""
