import sys
n = int(sys.stdin.read() or 1000)
for i in range(2, n + 1):
    if all(i % d for d in range(2, int(i**0.5) + 1)): print(i)
    if i % 100 == 0: print(f"progress {i / n} up to {i}")
