"""Where rules, techniques and tasks were published, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

RULES = {
    "klms": ("mitchinson2003", "liu2008"),
    "qklms": ("chen2012",),
    "krls-t": ("vanvaerenbergh2012",),
    "fb-krls": ("vanvaerenbergh2010",),
    "sw-krls": ("vanvaerenbergh2006",),
    "ald-krls": ("engel2004",),
    "knlms": ("richard2009",),
    "nlms": ("nagumo1967",),
    "rls": ("bierman1977",),
    "quadratic-rls": ("bierman1977",),
    "rff-rls": ("rahimi2007", "bierman1977"),
    "expansion-nlms": ("nagumo1967",),
    "expansion-rls": ("vanvaerenbergh2012",),
    "spectrum-ekf": ("puskorius1991", "lazarogredilla2010"),
    "spectrum-nlms": ("lazarogredilla2010", "nagumo1967"),
    "spectrum-softmax": ("lazarogredilla2010", "bridle1990"),
    "krr": ("saunders1998",),
    "ls-svm": ("suykens1999",),
    "kfd": ("mika1999",),
    "frozen": (),  # however it was trained
    "nystrom": ("smola2000",),
    "nystrom-rls": ("smola2000", "bierman1977"),
    "okfeb": ("sheikholeslami2016",),
}
"""A rule's sources."""
TECHNIQUE = "mitchinson2003"
"""The source of all techniques; krls-t and fb-krls have "sup" in their own."""

ENTRIES = {
    "mitchinson2003": """@techreport{mitchinson2003,
  author = {Mitchinson, B. and Dodd, T. J. and Harrison, R. F.},
  title = {Reduction of Kernel Models},
  institution = {Department of Automatic Control and Systems Engineering, University of Sheffield},
  number = {ACSE Research Report 836},
  year = {2003}
}""",
    "liu2008": """@article{liu2008,
  author = {Liu, Weifeng and Pokharel, Puskal P. and Pr{\\'i}ncipe, Jos{\\'e} C.},
  title = {The Kernel Least-Mean-Square Algorithm},
  journal = {IEEE Transactions on Signal Processing},
  volume = {56},
  number = {2},
  pages = {543--554},
  year = {2008}
}""",
    "chen2012": """@article{chen2012,
  author = {Chen, Badong and Zhao, Songlin and Zhu, Pingping and Pr{\\'i}ncipe, Jos{\\'e} C.},
  title = {Quantized Kernel Least Mean Square Algorithm},
  journal = {IEEE Transactions on Neural Networks and Learning Systems},
  volume = {23},
  number = {1},
  pages = {22--32},
  year = {2012}
}""",
    "vanvaerenbergh2012": """@article{vanvaerenbergh2012,
  author = {Van Vaerenbergh, Steven and L{\\'a}zaro-Gredilla, Miguel and Santamar{\\'i}a, Ignacio},
  title = {Kernel Recursive Least-Squares Tracker for Time-Varying Regression},
  journal = {IEEE Transactions on Neural Networks and Learning Systems},
  volume = {23},
  number = {8},
  pages = {1313--1326},
  year = {2012}
}""",
    "vanvaerenbergh2010": """@inproceedings{vanvaerenbergh2010,
  author = {Van Vaerenbergh, Steven and Santamar{\\'i}a, Ignacio and Liu, Weifeng and Pr{\\'i}ncipe, Jos{\\'e} C.},
  title = {Fixed-Budget Kernel Recursive Least-Squares},
  booktitle = {IEEE International Conference on Acoustics, Speech and Signal Processing},
  pages = {1882--1885},
  year = {2010}
}""",
    "vanvaerenbergh2006": """@inproceedings{vanvaerenbergh2006,
  author = {Van Vaerenbergh, Steven and V{\\'i}a, Javier and Santamar{\\'i}a, Ignacio},
  title = {A Sliding-Window Kernel {RLS} Algorithm and Its Application to Nonlinear Channel Identification},
  booktitle = {IEEE International Conference on Acoustics, Speech and Signal Processing},
  volume = {5},
  pages = {789--792},
  year = {2006}
}""",
    "vanvaerenbergh2013": """@inproceedings{vanvaerenbergh2013,
  author = {Van Vaerenbergh, Steven and Santamar{\\'i}a, Ignacio},
  title = {A Comparative Study of Kernel Adaptive Filtering Algorithms},
  booktitle = {IEEE Digital Signal Processing and Signal Processing Education Meeting},
  pages = {181--186},
  year = {2013}
}""",
    "engel2004": """@article{engel2004,
  author = {Engel, Yaakov and Mannor, Shie and Meir, Ron},
  title = {The Kernel Recursive Least-Squares Algorithm},
  journal = {IEEE Transactions on Signal Processing},
  volume = {52},
  number = {8},
  pages = {2275--2285},
  year = {2004}
}""",
    "richard2009": """@article{richard2009,
  author = {Richard, C{\\'e}dric and Bermudez, Jos{\\'e} Carlos M. and Honeine, Paul},
  title = {Online Prediction of Time Series Data with Kernels},
  journal = {IEEE Transactions on Signal Processing},
  volume = {57},
  number = {3},
  pages = {1058--1067},
  year = {2009}
}""",
    "nagumo1967": """@article{nagumo1967,
  author = {Nagumo, Jin-Ichi and Noda, Atsuhiko},
  title = {A Learning Method for System Identification},
  journal = {IEEE Transactions on Automatic Control},
  volume = {12},
  number = {3},
  pages = {282--287},
  year = {1967}
}""",
    "bierman1977": """@book{bierman1977,
  author = {Bierman, Gerald J.},
  title = {Factorization Methods for Discrete Sequential Estimation},
  publisher = {Academic Press},
  year = {1977}
}""",
    "puskorius1991": """@inproceedings{puskorius1991,
  author = {Puskorius, G. V. and Feldkamp, L. A.},
  title = {Decoupled extended {K}alman filter training of feedforward layered networks},
  booktitle = {International Joint Conference on Neural Networks (IJCNN)},
  volume = {1},
  pages = {771--777},
  year = {1991}
}""",
    "lazarogredilla2010": """@article{lazarogredilla2010,
  author = {L{\\'a}zaro-Gredilla, Miguel and Qui{\\~n}onero-Candela, Joaquin and Rasmussen, Carl Edward and Figueiras-Vidal,
            An{\\'i}bal R.},
  title = {Sparse spectrum {G}aussian process regression},
  journal = {Journal of Machine Learning Research},
  volume = {11},
  pages = {1865--1881},
  year = {2010}
}""",
    "bridle1990": """@incollection{bridle1990,
  author = {Bridle, John S.},
  title = {Probabilistic interpretation of feedforward classification network outputs, with relationships to statistical
           pattern recognition},
  booktitle = {Neurocomputing: Algorithms, Architectures and Applications},
  publisher = {Springer},
  pages = {227--236},
  year = {1990}
}""",
    "rahimi2007": """@inproceedings{rahimi2007,
  author = {Rahimi, Ali and Recht, Benjamin},
  title = {Random Features for Large-Scale Kernel Machines},
  booktitle = {Advances in Neural Information Processing Systems 20},
  year = {2007}
}""",
    "saunders1998": """@inproceedings{saunders1998,
  author = {Saunders, Craig and Gammerman, Alexander and Vovk, Volodya},
  title = {Ridge Regression Learning Algorithm in Dual Variables},
  booktitle = {International Conference on Machine Learning},
  pages = {515--521},
  year = {1998}
}""",
    "suykens1999": """@article{suykens1999,
  author = {Suykens, J. A. K. and Vandewalle, J.},
  title = {Least Squares Support Vector Machine Classifiers},
  journal = {Neural Processing Letters},
  volume = {9},
  number = {3},
  pages = {293--300},
  year = {1999}
}""",
    "mika1999": """@inproceedings{mika1999,
  author = {Mika, Sebastian and R{\\"a}tsch, Gunnar and Weston, Jason and Sch{\\"o}lkopf, Bernhard and M{\\"u}ller, Klaus-Robert},
  title = {Fisher Discriminant Analysis with Kernels},
  booktitle = {IEEE Workshop on Neural Networks for Signal Processing},
  pages = {41--48},
  year = {1999}
}""",
    "smola2000": """@inproceedings{smola2000,
  author = {Smola, Alex J. and Sch{\\"o}lkopf, Bernhard},
  title = {Sparse Greedy Matrix Approximation for Machine Learning},
  booktitle = {International Conference on Machine Learning},
  pages = {911--918},
  year = {2000}
}""",
    "sheikholeslami2016": """@misc{sheikholeslami2016,
  author = {Sheikholeslami, Fatemeh and Berberidis, Dimitris and Giannakis, Georgios B.},
  title = {Large-Scale Kernel-Based Feature Extraction via Budgeted Nonlinear Subspace Tracking},
  howpublished = {arXiv},
  year = {2016}
}""",
    "lorenz1963": """@article{lorenz1963,
  author = {Lorenz, Edward N.},
  title = {Deterministic Nonperiodic Flow},
  journal = {Journal of the Atmospheric Sciences},
  volume = {20},
  number = {2},
  pages = {130--141},
  year = {1963}
}""",
    "mackey1977": """@article{mackey1977,
  author = {Mackey, Michael C. and Glass, Leon},
  title = {Oscillation and Chaos in Physiological Control Systems},
  journal = {Science},
  volume = {197},
  number = {4300},
  pages = {287--289},
  year = {1977}
}""",
}


def bibliography(keys: Iterable[str]) -> str:
    """The entries of these keys, each once, sorted."""
    return "\n\n".join(ENTRIES[key] for key in sorted(set(keys))) + "\n"
