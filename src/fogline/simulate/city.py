"""City sensors: 788 boxes at 88 places of eight cities, each measuring air and light.

Light follows the sun at the sensor's longitude, temperature lags it, humidity runs against
temperature, dust and air quality rise with traffic. A few readings are missing or spiked.
"""

from __future__ import annotations

import numpy as np

from fogline.simulate import series
from fogline.simulate.schema import Columns, FieldSchema, FieldValue, Floats, Ints, StreamKind

SENSORS = 788
PLACES_PER_CITY = 11
MISSING, SPIKED = 0.002, 0.001

# Longitude, latitude, mean temperature in °C, mean humidity in %.
CITIES = np.array(
    [
        (6.15, 46.20, 8.0, 55.0),  # Geneva
        (-43.18, -22.91, 29.0, 55.0),  # Rio de Janeiro
        (121.46, 31.22, 12.0, 58.0),  # Shanghai
        (-122.42, 37.77, 15.0, 60.0),  # San Francisco
        (-71.09, 42.36, 3.0, 42.0),  # Boston
        (77.62, 12.96, 26.0, 45.0),  # Bengaluru
        (103.85, 1.29, 29.0, 72.0),  # Singapore
        (13.40, 52.52, 5.0, 62.0),  # Berlin
    ]
)

FIELDS = (
    FieldSchema("source", "string"),
    FieldSchema("longitude", "lon", 6),
    FieldSchema("latitude", "lat", 6),
    FieldSchema("temperature", "far", 1),
    FieldSchema("humidity", "per", 1),
    FieldSchema("light", "per", 0),
    FieldSchema("dust", "per", 2),
    FieldSchema("airquality_raw", "per", 0),
)


class City:
    """The sensors of one seed; called with events, it gives their readings."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        places = np.repeat(CITIES, PLACES_PER_CITY, axis=0)
        places[:, :2] += rng.normal(0, 0.03, (len(places), 2))
        self.base = places[rng.integers(0, len(places), SENSORS)]
        self.names = [f"c{name}" for name in series.identifiers(rng, SENSORS, 24, False)]
        self.longitude = np.round(self.base[:, 0], 6).tolist()
        self.latitude = np.round(self.base[:, 1], 6).tolist()
        self.phase = rng.random(SENSORS)
        self.warmth = rng.normal(0, 1.5, SENSORS)
        self.brightness = rng.lognormal(6.5, 0.8, SENSORS)
        self.dustiness = rng.lognormal(6.4, 0.9, SENSORS)
        self.smog = rng.lognormal(3.1, 0.5, SENSORS)

    def __call__(self, rng: np.random.Generator, index: Ints, time_ms: Ints) -> Columns:
        sensor = index % SENSORS
        longitude, _, mean_temperature, mean_humidity = self.base[sensor].T
        hour = series.hour_of_day(time_ms, longitude)
        wander = series.drift(time_ms, self.phase[sensor], 47)
        noise = rng.normal(0, 1, (5, index.size))
        sun = np.clip(series.wave(hour, 12.5) + 0.1, 0, None)
        busy = 0.6 + 0.5 * series.rush(hour, 8.5) + 0.6 * series.rush(hour, 18.0)

        warm = 4 * series.wave(hour, 15) + self.warmth[sensor] + wander + 0.2 * noise[0]
        temperature = series.spikes(rng, mean_temperature + warm, SPIKED, 1.3)
        humidity = np.clip(mean_humidity - 2.2 * warm + 3 * noise[1], 12, 100)
        light = np.clip(self.brightness[sensor] * sun * (1 + 0.1 * noise[2]), 0, 9800)
        dust = self.dustiness[sensor] * busy * np.exp(0.25 * wander + 0.1 * noise[3])
        dust = np.clip(series.spikes(rng, dust, SPIKED, 5), 0.62, 12000)
        smog = np.clip(self.smog[sensor] * busy * np.exp(0.2 * wander + 0.1 * noise[4]), 4, 1000)

        def gaps(values: Floats, decimals: int) -> list[FieldValue]:
            return series.with_gaps(rng, series.numbers(values, decimals), MISSING)

        places = sensor.tolist()
        return {
            "source": series.pick(self.names, sensor),
            "longitude": [self.longitude[place] for place in places],
            "latitude": [self.latitude[place] for place in places],
            "temperature": gaps(temperature, 1),
            "humidity": gaps(humidity, 1),
            "light": series.numbers(light, 0),
            "dust": gaps(dust, 2),
            "airquality_raw": gaps(smog, 0),
        }


STREAM = StreamKind(
    "city", "788 city sensors: temperature, humidity, light, dust", "senml", FIELDS, City
)
