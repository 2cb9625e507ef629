"""Change detection in the monitoring phase. Tsamoura, Gounaris and Manolopoulos 2016, section 7.

streams.py    profile tuples of filters whose drop rates change: suddenly, gradually, back and forth
replays.py    orderings with fixed windows and with detectors over them, and what they cost
detection.py  delay and false alarms of the detectors alone
engine.py     queries whose filters change, against the best order of each time
report.py     pages and pictures
"""
