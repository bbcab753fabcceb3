"""Answers of MongoDB's servers, recorded as data, and the program that records, checks and replays them."""
