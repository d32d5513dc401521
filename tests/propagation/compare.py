"""compare.py URL: compares coverages of the server with pycraf, and with formulas in a second writing."""

import math
import random
import sys

import numpy
from astropy import units
from losses import check, compare, compute, heights, line
from pycraf import conversions, pathprof

LIGHT_M_S = 299_792_458


def free_space(request, km):
    mhz, base_m, mobile_m = heights(request)
    distance = math.hypot(km * 1000, base_m - mobile_m) * units.m
    return -conversions.free_space_loss(distance, mhz * units.MHz).value


def two_ray(request, km):
    """The sum of both rays as complex numbers."""
    mhz, base_m, mobile_m = heights(request)
    wave = 2 * math.pi * mhz * 1e6 / LIGHT_M_S
    direct, reflected = (complex(km * 1000, base_m - mobile_m), complex(km * 1000, base_m + mobile_m))
    ground = request.get("ground")
    coefficient = -1
    if ground:
        sine = (base_m + mobile_m) / abs(reflected)
        permittivity = ground["permittivity"] - 60j * ground["conductivity_s_m"] * LIGHT_M_S / (mhz * 1e6)
        root = (permittivity - 1 + sine**2) ** 0.5
        first = sine * (permittivity if ground["polarization"] == "vertical" else 1)
        coefficient = (first - root) / (first + root)
    field = sum(size * numpy.exp(-1j * wave * abs(ray)) / abs(ray) for size, ray in [(1, direct), (coefficient, reflected)])
    return -20 * math.log10(abs(field) / (2 * wave))


def hata(request, km):
    mhz, base_m, mobile_m = heights(request)
    f, where = math.log10(mhz), request["environment"]
    height = (1.1 * f - 0.7) * mobile_m - (1.56 * f - 0.8)
    if where == "urban-large":
        low, high = 8.29 * math.log10(1.54 * mobile_m) ** 2 - 1.1, 3.2 * math.log10(11.75 * mobile_m) ** 2 - 4.97
        height = low if mhz <= 200 else high
    loss = 69.55 + 26.16 * f - 13.82 * math.log10(base_m) - height + (44.9 - 6.55 * math.log10(base_m)) * math.log10(km)
    less = {"suburban": 2 * math.log10(mhz / 28) ** 2 + 5.4, "open": 4.78 * f**2 - 18.33 * f + 40.94}
    return max(loss - less.get(where, 0), free_space(request, km)) if km >= 1 else None


def cost231_hata(request, km):
    mhz, base_m, mobile_m = heights(request)
    f, hb = math.log10(mhz), math.log10(base_m)
    height = (1.1 * f - 0.7) * mobile_m - (1.56 * f - 0.8)
    metropolitan = 3 if request["environment"] == "urban-large" else 0
    loss = 46.3 + 33.9 * f - 13.82 * hb - height + (44.9 - 6.55 * hb) * math.log10(km) + metropolitan
    return loss if km >= 1 else None


def walfisch_ikegami(request, km):
    mhz, base_m, mobile_m = heights(request)
    street = request["street"]
    roof, width, angle = street["building_height_m"], street["street_width_m"], street["street_angle_deg"]
    f, d = math.log10(mhz), math.log10(km)
    if km < 0.02:
        return None
    if street.get("line_of_sight") == "always":
        return max(42.6 + 26 * d + 20 * f, free_space(request, km))
    bends = [(0, -10), (35, -10 + 0.354 * 35)] if angle < 35 else [(35, 2.5), (55, 4)] if angle < 55 else [(55, 4), (90, 0.01)]
    orientation = float(numpy.interp(angle, *zip(*bends, strict=True)))
    rooftop = -16.9 - 10 * math.log10(width) + 10 * f + 20 * math.log10(roof - mobile_m) + orientation
    below = max(roof - base_m, 0)
    shadow = -18 * math.log10(1 + base_m - roof) if base_m > roof else 0
    ka = 54 + 0.8 * below * min(km / 0.5, 1)
    kd = 18 + 15 * below / roof
    kf = -4 + (1.5 if request["environment"] == "urban-large" else 0.7) * (mhz / 925 - 1)
    rows = shadow + ka + kd * d + kf * f - 9 * math.log10(street["building_separation_m"])
    return max(32.4 + 20 * d + 20 * f + max(rooftop + rows, 0), free_space(request, km))


def knife_edge(nu):
    return 6.9 + 20 * math.log10(math.hypot(nu - 0.1, 1) + nu - 0.1) if nu > -0.78 else 0


def diffraction(request, km):
    """Free space and the diffraction of ITU-R P.452 with the parameters of edges that pycraf finds."""
    mhz, base_m, mobile_m = heights(request)
    count = round(km * 10)
    if count < 3:
        return None
    # An effective radius of 8,500 km.
    lapse = 157 - 157 * 6371 / 8500
    dimless = conversions.dimless
    is_deygout = request["diffraction"] == "deygout"
    path = pathprof.PathProp(
        mhz / 1000 * units.GHz, 290 * units.K, 1013 * units.hPa,
        6 * units.deg, 50 * units.deg, 6.2 * units.deg, 50 * units.deg,
        base_m * units.m, mobile_m * units.m, 100 * units.m, 50 * units.percent,
        version=14 if is_deygout else 16, delta_N=lapse * dimless / units.km, N0=320 * dimless,
        hprof_dists=numpy.arange(count + 1) / 10 * units.km,
        hprof_heights=numpy.array(request["heights"][: count + 1], dtype=float) * units.m,
        hprof_bearing=0 * units.deg, hprof_backbearing=180 * units.deg,
    )._pp
    ends = [request["heights"][0] + base_m, request["heights"][count] + mobile_m]
    distance = math.hypot(km * 1000, ends[0] - ends[1]) * units.m
    free = -conversions.free_space_loss(distance, mhz * units.MHz).value
    if is_deygout:
        main = knife_edge(path["nu_m50"])
        if not 0.15 < path["d_m50"] < km - 0.15:
            # The main edge is the first or the last point: pycraf then looks at neither side of it.
            return None
        sides = knife_edge(path["nu_t50"]) + knife_edge(path["nu_r50"]) if main else 0
        return free + main + (1 - math.exp(-main / 6)) * (sides + 10 + 0.04 * km)
    edge = knife_edge(path["nu_bull_50"])
    return free + edge + (1 - math.exp(-edge / 6)) * (10 + 0.02 * km)


def hills(seed):
    """Heights every 100 m, of a few hills."""
    chance = random.Random(seed)
    waves = [(chance.uniform(20, 120), chance.uniform(5, 60), chance.uniform(0, 6)) for _ in range(4)]
    return [round(500 + sum(size * math.sin(at / width + phase) for size, width, phase in waves), 2) for at in range(201)]


def terrain_lines(method):
    for seed in range(3):
        heights_m = hills(seed)
        row = " ".join(map(str, heights_m))
        text = f"ncols 201\nnrows 2\nxllcenter 0\nyllcenter 0\ncellsize 100\n{row}\n{row}\n"
        for mhz, base_m, mobile_m in [(150, 60, 1.5), (900, 30, 2), (3500, 10, 10)]:
            request = line("free-space", mhz, base_m, mobile_m, 20_000, 400, diffraction=method)
            request["terrain"] = {"type": "esri-ascii", "text": text}
            yield request, heights_m


def main(url):
    lines = [line("free-space", mhz, base, 1.5, 50_000, 500) for mhz in (100, 900, 5800) for base in (2, 300)]
    compare(url, "free space with pycraf (ITU-R P.525)", free_space, lines)
    for method in "bullington", "deygout":
        found, wanted = [], []
        for request, heights_m in terrain_lines(method):
            for (column, _), loss in compute(url, request).items():
                known = request | {"heights": heights_m}
                if (expected := diffraction(known, column * 0.4)) is not None:
                    found.append(loss)
                    wanted.append(expected)
        check(f"{method} with pycraf (ITU-R P.526)", found, wanted)
    ground = {"permittivity": 15, "conductivity_s_m": 0.005}
    lines = [line("two-ray", mhz, 30, 1.5, 20_000, 100) for mhz in (150, 900)]
    lines += [line("two-ray", 450, 30, 1.5, 20_000, 100, ground=ground | {"polarization": way}) for way in ("vertical", "horizontal")]
    compare(url, "two rays with a second writing", two_ray, lines)
    places = ["urban-large", "urban", "suburban", "open"]
    lines = [line("hata", mhz, 50, mobile, 20_000, 200, environment=where) for mhz in (150, 450, 1500) for mobile in (1.5, 8) for where in places]
    compare(url, "Okumura-Hata with a second writing", hata, lines)
    lines = [line("cost231-hata", mhz, 35, 3, 20_000, 200, environment=where) for mhz in (1500, 2000) for where in places[:3]]
    compare(url, "COST 231-Hata with a second writing", cost231_hata, lines)
    street = {"building_height_m": 16, "street_width_m": 22, "building_separation_m": 48}
    lines = [
        line("walfisch-ikegami", mhz, base, 1.5, 5_000, 20, environment=where, street=street | {"street_angle_deg": angle, "line_of_sight": sight})
        for mhz in (800, 2000) for base in (8, 16, 40) for where in places[:2] for angle in (20, 45, 90) for sight in ("never", "always")
    ]
    compare(url, "Walfisch-Ikegami with a second writing", walfisch_ikegami, lines)


if __name__ == "__main__":
    main(sys.argv[1])
