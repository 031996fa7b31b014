"""The pytest plugin of atonnx.

pytest imports this module in every run of an environment that has atonnx, so it imports neither torch nor
hypothesis at its top and does nothing unless asked.
"""
